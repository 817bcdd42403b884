"""Pretraining: from raw text to a model folder."""

from elmokit.pretraining.bilm import (
    ADAPT,
    PerplexityChange,
    Recipe,
    RunRecord,
    pretrain,
    pretraining_summary,
    read_recipe,
)

__all__ = [
    "ADAPT", "PerplexityChange", "Recipe", "RunRecord", "pretrain", "pretraining_summary", "read_recipe",
]  # fmt: skip
