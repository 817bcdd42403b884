"""Pretraining: from raw text to a model folder.

core           what all architectures share
bilm, bert     an architecture each
architectures  the choice between them
"""

from elmokit.pretraining.architectures import ARCHITECTURES, pretrain
from elmokit.pretraining.bert import BertRecipe, MaskedScores, read_bert_recipe
from elmokit.pretraining.bilm import ADAPT, PerplexityChange, Recipe, pretrain_bilm, read_recipe
from elmokit.pretraining.core import RunRecord, pretraining_summary

__all__ = [
    "ADAPT", "ARCHITECTURES", "BertRecipe", "MaskedScores", "PerplexityChange", "Recipe", "RunRecord",
    "pretrain", "pretrain_bilm", "pretraining_summary", "read_bert_recipe", "read_recipe",
]  # fmt: skip
