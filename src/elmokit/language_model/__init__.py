"""The biLM as a language model: score text, fill gaps, generate."""

from elmokit.language_model.gap_filling import GapAccuracy
from elmokit.language_model.lm import MASK, LanguageModel, Side
from elmokit.language_model.perplexity_file import gaps_file, perplexity_file
from elmokit.language_model.results import Candidate, Perplexity, SentenceScore

__all__ = [
    "MASK", "Candidate", "GapAccuracy", "LanguageModel", "Perplexity", "SentenceScore", "Side",
    "gaps_file", "load_lm", "perplexity_file",
]  # fmt: skip

load_lm = LanguageModel.load
