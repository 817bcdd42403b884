"""Pretraining of a biLM: from raw text to a model folder.

recipe           what is trained and how
windows          the corpus, a window at a time, for both directions
network          one step: LSTM with a hand-written backward pass, softmax, token encoder
bilm_optimizer   AdamW or Adagrad, by rows for the softmax
bilm_job         these as a job for the training loop
pretraining      from text to the model's folder
"""

from elmokit.pretrain.bilm.model_card import PerplexityChange
from elmokit.pretrain.bilm.pretraining import pretrain
from elmokit.pretrain.bilm.recipe import Recipe, read_recipe

__all__ = ["PerplexityChange", "Recipe", "pretrain", "read_recipe"]
