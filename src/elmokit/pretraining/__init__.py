"""Pretraining: from raw text to a model folder."""

from elmokit.pretraining.bilm import PerplexityChange, Recipe, pretrain, read_recipe

__all__ = ["PerplexityChange", "Recipe", "pretrain", "read_recipe"]
