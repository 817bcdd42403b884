"""Ranked lists of passages: the best of many scores in a stable order, and the fusion of several lists."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch

# Segment and row: the order in which passages were added, which decides between equal scores.
Place: TypeAlias = tuple[int, int]
Ranking: TypeAlias = list[tuple[Place, float]]

_DIGITS = 5  # scores that are equal to so many digits differ by rounding only
RRF = 60  # Cormack, Clarke & Büttcher 2009


def best(scores: Iterable[tuple[int, npt.NDArray[np.int64], npt.NDArray[np.float32]]], k: int) -> Ranking:
    """Return the k passages with the highest scores.

    Args:
        scores: For each segment its number, rows, and their scores.
        k: How many.

    Example:
        >>> best([(0, np.array([3, 7]), np.array([0.5, 0.9])), (1, np.array([2]), np.array([0.5]))], 2)
        [((0, 7), 0.9), ((0, 3), 0.5)]
    """
    found: Ranking = []
    for segment, rows, values in scores:
        rounded = np.round(values.astype(np.float64), _DIGITS)
        if len(rows) > k:
            limit = np.partition(rounded, len(rounded) - k)[len(rounded) - k]
            chosen = rounded >= limit  # all equal ones, since the order of rows decides
            rows, rounded = rows[chosen], rounded[chosen]
        order = np.lexsort((rows, -rounded))[:k]
        found += [((segment, int(rows[at])), float(rounded[at])) for at in order]
    return sorted(found, key=lambda one: (-one[1], one[0]))[:k]


def fuse(rankings: Mapping[str, Ranking], weights: Mapping[str, float]) -> Ranking:
    """Fuse rankings by reciprocal ranks: score = Σ weight / (60 + rank).

    Example:
        >>> one, two = [((0, 1), 9.0), ((0, 2), 8.0)], [((0, 2), 0.7)]
        >>> [place for place, _ in fuse({"a": one, "b": two}, {"a": 1, "b": 1})]
        [(0, 2), (0, 1)]
    """
    scores: dict[Place, float] = {}
    for name, ranking in rankings.items():
        for rank, (place, _) in enumerate(ranking, start=1):
            scores[place] = scores.get(place, 0.0) + weights[name] / (RRF + rank)
    return sorted(((place, score) for place, score in scores.items()), key=lambda one: (-one[1], one[0]))


def late_interaction(
    query: npt.NDArray[np.float32],
    weights: npt.NDArray[np.float32],
    passages: Sequence[npt.NDArray[np.float32]],
) -> npt.NDArray[np.float32]:
    """Return for each passage the weighted mean over the query's words of the best cosine with its words.

    Args:
        query: (Q, D) the vectors of the query's words, of length 1.
        weights: (Q,) how much each counts.
        passages: The vectors (T, D) of the words of each.

    Example:
        >>> words = np.eye(2, dtype=np.float32)
        >>> late_interaction(words, np.array([1, 1], np.float32), [words[:1], words, words[:0]]).tolist()
        [0.5, 1.0, 0.0]
    """
    lengths = np.array([len(one) for one in passages])
    scores = np.zeros(len(passages), np.float32)
    filled = np.flatnonzero(lengths)
    if len(filled) and len(query):
        joined = np.concatenate([passages[at] for at in filled.tolist()])  # (S, D)
        cosines = (torch.from_numpy(joined) @ torch.from_numpy(query).T).numpy()  # (S, Q)
        starts = np.cumsum(lengths[filled]) - lengths[filled]
        highest = np.maximum.reduceat(cosines, starts, axis=0)  # (passages, Q)
        scores[filled] = highest @ (weights / max(float(weights.sum()), 1e-12))
    return scores
