"""Choose the next token from a model's log-probabilities."""

from elmokit.decoding.sampling import nucleus, sample

__all__ = ["nucleus", "sample"]
