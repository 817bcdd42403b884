"""Scores of predictions, made from counts of items.

An item is an entity (its place and kind), the tag of a token, or the label of a text. With tp true positives
among p predicted items and g gold items,

    precision = tp / p,   recall = tp / g,   F1 = 2 tp / (p + g).

Where each place has exactly one item, as with parts of speech or classes, F1 is the accuracy.
"""

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

Items = set[tuple[Hashable, str]]  # the items of one example: where, and what
Counts = npt.NDArray[np.int64]

_RESAMPLES = 1000
_NORMAL_95 = 1.959964  # standard deviations within which a normal variable lies with 95 %
_AT_ONCE = 2_000_000  # numbers in a block of resamples


@dataclass(frozen=True)
class ClassScore:
    """How well one label is predicted; `support` counts its gold items."""

    label: str
    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True)
class Scores:
    """The result of an evaluation.

    Attributes:
        main: name of the score that early stopping and comparisons use.
        values: every score by its name; greater is better.
        interval: 95 % interval of the main score, see `score_interval`; None if it is not known.
        classes: the scores of each label.
        labels: names of the rows (true) and columns (predicted) of `confusion`.
        confusion: counts; empty if places may have several labels.
        examples: (n, parts, 3) true positives, predicted and gold items of each example, if items are
            counted; not written to files.
    """

    main: str
    values: dict[str, float]
    interval: tuple[float, float] | None = None
    classes: list[ClassScore] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    confusion: list[list[int]] = field(default_factory=list)
    examples: Counts | None = field(default=None, repr=False, compare=False)

    @property
    def value(self) -> float:
        """The main score."""
        return self.values[self.main]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        data = asdict(replace(self, examples=None))
        del data["examples"]
        return data


def scores_from_counts(
    parts: Mapping[str, "Counted"],
    *,
    others: Mapping[str, float] | None = None,
    main: str | None = None,
    pairs: Sequence[tuple[str, str]] = (),
) -> Scores:
    """Make scores from counted items.

    Args:
        parts: the counts by the names of their F1.
        others: further scores.
        main: name for the mean of all F1, where there are several parts; else the one part is the main score.
        pairs: (true, predicted) label of each place, for the confusion matrix.
    """
    values = {name: part.total()[2] for name, part in parts.items()}
    main = main or next(iter(values))
    classes = [one for part in parts.values() for one in part.classes()]
    macro = sum(one.f1 for one in classes) / max(1, len(classes))
    labels = sorted({label for pair in pairs for label in pair})
    counts = Counter(pairs)
    return Scores(
        main=main,
        values={main: sum(values.values()) / len(values)} | values | dict(others or {}) | {"macro_f1": macro},
        interval=score_interval([part.examples for part in parts.values()]),
        classes=classes,
        labels=labels,
        confusion=[[counts[true, predicted] for predicted in labels] for true in labels],
        examples=np.stack([part.examples for part in parts.values()], axis=1),
    )


@dataclass(frozen=True)
class Counted:
    """True positives, predicted and gold items: (n, 3) for each example, and for each label."""

    examples: Counts
    labels: dict[str, tuple[int, int, int]]

    def total(self) -> tuple[float, float, float]:
        """Return precision, recall and F1 over all items."""
        true, predicted, gold = self.examples.sum(axis=0).tolist()
        return _ratios(true, predicted, gold)

    def classes(self) -> list[ClassScore]:
        """Return the scores of each label."""
        return [
            ClassScore(label, *_ratios(*counts), support=counts[2])
            for label, counts in sorted(self.labels.items())
        ]


def count_items(gold: Sequence[Items], predicted: Sequence[Items]) -> Counted:
    """Count true positives, predicted and gold items in each example and for each label."""
    true = [a & b for a, b in zip(gold, predicted, strict=True)]
    examples = [tuple(map(len, sets)) for sets in zip(true, predicted, gold, strict=True)]
    counters = [Counter(label for items in sets for _, label in items) for sets in (true, predicted, gold)]
    labels = {label for counter in counters for label in counter}
    by_label = {label: (counters[0][label], counters[1][label], counters[2][label]) for label in labels}
    return Counted(np.array(examples, np.int64).reshape(-1, 3), by_label)


def score_interval(parts: Sequence[Counts]) -> tuple[float, float]:
    """Return the 95 % interval of the mean F1 of the parts, (n, 3) counts each as in `Counted`.

    Wilson's for an accuracy, where each example has one item. Else from resampled examples; these say nothing
    if all are right, or all wrong, so that Wilson's is taken there too, with an example as the unit.
    """
    count = len(parts[0])
    if len(parts) == 1 and (parts[0][:, 1:] == 1).all():
        return wilson(float(parts[0][:, 0].mean()) if count else 0.0, count)
    low, high = bootstrap(parts)
    return (low, high) if low < high else wilson(low, count)


def wilson(share: float, count: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share p of n examples: all p with |p̂ - p| ≤ z √(p (1 - p) / n).

    Example:
        >>> [round(bound, 3) for bound in wilson(1.0, 30)]
        [0.886, 1.0]
    """
    if not count:
        return 0.0, 0.0
    z2 = _NORMAL_95**2 / count
    middle, half = share + z2 / 2, math.sqrt(z2 * (share * (1 - share) + z2 / 4))
    return max(0.0, (middle - half) / (1 + z2)), min(1.0, (middle + half) / (1 + z2))


def bootstrap(parts: Sequence[Counts], *, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % interval of the mean F1 of the parts, from resampled examples.

    Args:
        parts: (n, 3) true positives, predicted and gold items of each example.
        seed: of the random numbers.
    """
    random = np.random.default_rng(seed)
    count = len(parts[0])
    if not count:
        return 0.0, 0.0
    drawn: list[npt.NDArray[np.float64]] = []
    block = max(1, min(_RESAMPLES, _AT_ONCE // count))
    while sum(map(len, drawn)) < _RESAMPLES:
        times = random.multinomial(count, np.full(count, 1 / count), size=block)  # (block, n)
        sums = [(times @ part).astype(np.float64) for part in parts]  # (block, 3) each
        drawn.append(np.mean([2 * s[:, 0] / np.maximum(1, s[:, 1] + s[:, 2]) for s in sums], axis=0))
    low, high = np.quantile(np.concatenate(drawn), [0.025, 0.975])
    return float(low), float(high)


def _ratios(true: int, predicted: int, gold: int) -> tuple[float, float, float]:
    """Return precision, recall and F1; 0 where there is nothing to divide by."""
    return true / max(1, predicted), true / max(1, gold), 2 * true / max(1, predicted + gold)
