"""Choose the next token from a model's log-probabilities."""

from elmokit.decoding.sampling import new_generator, nucleus, sample

__all__ = ["new_generator", "nucleus", "sample"]
