"""Choose the next tokens from a model's log-probabilities: sampling, beam search, and rules for both."""

from elmokit.decoding.beam_search import (
    FoundSequence,
    SearchState,
    Step,
    beam_search,
    penalised,
    sample_sequences,
)
from elmokit.decoding.constraints import Constraints
from elmokit.decoding.sampling import new_generator, nucleus, sample

__all__ = [
    "Constraints", "FoundSequence", "SearchState", "Step", "beam_search", "new_generator", "nucleus",
    "penalised", "sample", "sample_sequences",
]  # fmt: skip
