"""Pretraining: from raw text to a model folder."""

from elmokit.pretraining.bilm import (
    ADAPT,
    PerplexityChange,
    Recipe,
    pretrain,
    read_recipe,
)
from elmokit.pretraining.core import RunRecord, pretraining_summary

__all__ = [
    "ADAPT", "PerplexityChange", "Recipe", "RunRecord", "pretrain", "pretraining_summary", "read_recipe",
]  # fmt: skip
