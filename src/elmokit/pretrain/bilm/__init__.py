"""Pretraining: raw text to a model folder.

recipe      what is trained and how
windows     the corpus, a window at a time, for both directions
network     one step: lstm (hand-written backward), softmax (sampled, adaptive, full), token encoder
optimizer   AdamW or Adagrad, by rows for the softmax
trainer     the loop: checkpoints, metrics, rolling back, several processes
run         from text to the model's folder; report: curve and card
"""

from elmokit.pretrain.bilm.recipe import Recipe, read_recipe
from elmokit.pretrain.bilm.report import Evaluation
from elmokit.pretrain.bilm.run import Run, pretrain
from elmokit.pretrain.bilm.trainer import Budget, Status, Trainer

__all__ = ["Budget", "Evaluation", "Recipe", "Run", "Status", "Trainer", "pretrain", "read_recipe"]
