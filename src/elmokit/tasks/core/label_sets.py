"""Label sets: made from training data, checked against other data, weighted in the loss."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

import torch
from torch import Tensor

from elmokit.errors import DataError


def by_frequency(labels: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """Return each label of all examples once, the most frequent first and equally frequent ones sorted."""
    counts = Counter(chain.from_iterable(labels))
    return tuple(sorted(counts, key=lambda name: (-counts[name], name)))


def check_labels(labels: Iterable[tuple[str, Iterable[str]]], known: Iterable[str]) -> None:
    """Check that no label is new.

    Args:
        labels: place and labels of each example.
        known: the labels of the training data.

    Raises:
        DataError: a label is new; the message names the place.
    """
    known = set(known)
    for where, names in labels:
        new = next((name for name in names if name not in known), None)
        if new is not None:
            raise DataError(
                f"{where}: label {new!r} does not occur in the training data, which has "
                f"{', '.join(sorted(known)):.100}; correct it, or count it as an error with allow_unseen=True"
            )


def class_weights(labels: Iterable[Iterable[str]], names: Sequence[str]) -> Tensor | None:
    """Return (K,) weights n / (K · n_k), so that rare labels count more; None if there are no labels."""
    counts = Counter(chain.from_iterable(labels))
    if not counts:
        return None
    total = sum(counts.values())
    return torch.tensor([total / (len(names) * max(1, counts[name])) for name in names])
