"""Pretraining: raw text to a model folder."""

from elmokit.pretrain.bilm import Budget, Evaluation, Recipe, Run, Status, Trainer, pretrain, read_recipe

__all__ = ["Budget", "Evaluation", "Recipe", "Run", "Status", "Trainer", "pretrain", "read_recipe"]
