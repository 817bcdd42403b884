"""Pretraining of a biLM: from raw text to a model folder.

recipe           what is trained and how
windows          the corpus, a window at a time, for both directions
network          one step: LSTM with a hand-written backward pass, softmax, token encoder
bilm_optimizer   AdamW or Adagrad, by rows for the softmax
bilm_job         these as a job for the training loop
teacher          a model whose layers are imitated
text_to_model    from text to the model's folder
"""

from elmokit.pretraining.bilm.model_card import PerplexityChange
from elmokit.pretraining.bilm.recipe import ADAPT, Recipe, read_recipe
from elmokit.pretraining.bilm.text_to_model import pretrain_bilm

__all__ = ["ADAPT", "PerplexityChange", "Recipe", "pretrain_bilm", "read_recipe"]
