"""Scores for pairs: the accuracy of labels, the correlation of scores."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from elmokit.tasks.core import Items, Scores, count_items, scores_from_counts
from elmokit.tasks.entailment.data import LabelledPair, scores_of
from elmokit.tasks.entailment.head import PairOutput

Numbers = npt.NDArray[np.float64]

_RESAMPLES = 1000


def score_labels(examples: Sequence[LabelledPair], outputs: Sequence[PairOutput]) -> Scores:
    """Return the accuracy."""
    pairs = [(example.label, output.label) for example, output in zip(examples, outputs, strict=True)]
    gold: list[Items] = [{(0, label)} for label, _ in pairs]
    found: list[Items] = [{(0, label)} for _, label in pairs]
    return scores_from_counts({"accuracy": count_items(gold, found)}, pairs=pairs)


def score_numbers(examples: Sequence[LabelledPair], outputs: Sequence[PairOutput]) -> Scores:
    """Return Pearson's and Spearman's correlations; the interval of the first is from resampled pairs."""
    gold = np.array(scores_of(examples))
    found = np.array([output.score for output in outputs], dtype=np.float64)
    random = np.random.default_rng(0)
    drawn = [random.integers(len(gold), size=len(gold)) for _ in range(_RESAMPLES)]
    low, high = np.quantile([pearson(gold[rows], found[rows]) for rows in drawn], [0.025, 0.975])
    values = {"pearson": pearson(gold, found), "spearman": spearman(gold, found)}
    return Scores("pearson", values, (float(low), float(high)))


def pearson(x: Numbers, y: Numbers) -> float:
    """Return the correlation of two series; 0 if one of them is constant.

    Example:
        >>> round(pearson(np.array([1.0, 2, 3]), np.array([1.0, 2, 4])), 4)
        0.982
    """
    x, y = x - x.mean(), y - y.mean()
    norm = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / norm if norm > 0 else 0.0


def spearman(x: Numbers, y: Numbers) -> float:
    """Return the correlation of the ranks; equal numbers share the mean of their ranks."""
    return pearson(_ranks(x), _ranks(y))


def _ranks(x: Numbers) -> Numbers:
    _, groups, counts = np.unique(x, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    means: Numbers = (ends - (counts - 1) / 2)[groups]
    return means
