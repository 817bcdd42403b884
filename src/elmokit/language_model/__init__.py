"""The biLM as a language model: score text, fill gaps, generate."""

from elmokit.language_model.lm import MASK, LanguageModel
from elmokit.language_model.perplexity_file import perplexity_file
from elmokit.language_model.results import Candidate, Perplexity, SentenceScore

__all__ = ["MASK", "Candidate", "LanguageModel", "Perplexity", "SentenceScore", "load_lm", "perplexity_file"]

load_lm = LanguageModel.load
