"""Label sets: made from training data, checked against other data, weighted in the loss."""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

import torch
from torch import Tensor

from elmokit.errors import DataError

logger = logging.getLogger(__name__)


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
                f"{_some(known)}; correct it, or count it as an error with allow_unseen=True"
            )


def warn_of_labels(labels: Sequence[Sequence[str]], where: str, *, hint: str = "") -> None:
    """Warn about training data that cannot teach much: a label that occurs once, or only one label.

    Args:
        labels: of each example.
        where: a place in the data.
        hint: what to do if most examples have a label of their own.
    """
    counts = Counter(chain.from_iterable(labels))
    once = sorted(name for name, count in counts.items() if count == 1)
    if len(counts) == 1 and all(labels):
        logger.warning("%s: all examples have the label %r, so there is nothing to learn", where, *counts)
    elif once:
        logger.warning(
            "%s: %d of %d labels occur only once in the training data, too rarely to be learnt: %s%s",
            *(where, len(once), len(counts), _some(once)),
            hint if 2 * len(once) > len(labels) else "",
        )


def class_weights(labels: Iterable[Iterable[str]], names: Sequence[str]) -> Tensor | None:
    """Return (K,) weights n / (K · n_k), so that rare labels count more; None if there are no labels."""
    counts = Counter(chain.from_iterable(labels))
    if not counts:
        return None
    total = sum(counts.values())
    return torch.tensor([total / (len(names) * max(1, counts[name])) for name in names])


def _some(names: Iterable[str], most: int = 10) -> str:
    """Return the first names in the order of the alphabet, and how many more there are."""
    names = sorted(names)
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
