"""Language models: score text, fill gaps, generate.

lm             the biLM, which predicts from the left and from the right
masked_lm      a model of the BERT family, which predicts from both sides at once
gap_filling    how the directions of a biLM are combined to fill a gap
generation     sentences from the forward direction: by sampling, or by beam search
"""

from pathlib import Path
from typing import Any

from elmokit.language_model.gap_filling import GapAccuracy
from elmokit.language_model.generation import Continuation, continuations
from elmokit.language_model.lm import MASK, LanguageModel, Side
from elmokit.language_model.masked_lm import (
    MaskedCandidate,
    MaskedLanguageModel,
    MaskedScore,
    is_masked,
)
from elmokit.language_model.perplexity_file import gaps_file, perplexity_file
from elmokit.language_model.results import Candidate, Perplexity, SentenceScore

__all__ = [
    "MASK", "Candidate", "Continuation", "GapAccuracy", "LanguageModel", "MaskedCandidate",
    "MaskedLanguageModel", "MaskedScore", "Perplexity", "SentenceScore", "Side", "continuations",
    "gaps_file", "load_any_lm", "load_lm", "perplexity_file",
]  # fmt: skip

load_lm = LanguageModel.load


def load_any_lm(
    path: str | Path,
    weights: str | Path | None = None,
    **options: Any,  # noqa: ANN401 (those of both)
) -> LanguageModel | MaskedLanguageModel:
    """Open a language model that fills gaps and scores sentences: "bert:FOLDER", or what `load_lm` opens."""
    if not is_masked(path):
        return LanguageModel.load(path, weights, **options)
    return MaskedLanguageModel(str(path), **options)
