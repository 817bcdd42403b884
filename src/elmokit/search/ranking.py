"""Ranked lists of passages: the best of many scores in a stable order, and the fusion of several lists."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from elmokit.search.postings import saturated
from elmokit.search.quantised import Quantised

# Segment and row: the order in which passages were added, which decides between equal scores.
Place: TypeAlias = tuple[int, int]
Ranking: TypeAlias = list[tuple[Place, float]]

_DIGITS = 5  # scores that are equal to so many digits differ by rounding only
_NUM_BEST = 3  # passages that others are compared with
_LEAST_COSINE = 0.4  # of words that match
_LEAST_SIMILAR = 0.5  # of words that count as another
_UNLIMITED = ("bm25", "often")
_WORDS_AT_ONCE = 8192
_TINY = 1e-12


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
        if len(rows) > 4 * k:  # leave out most before they are rounded
            chosen = values >= np.partition(values, len(values) - k)[len(values) - k] - 10.0**-_DIGITS
            rows, values = rows[chosen], values[chosen]
        rounded = np.round(values.astype(np.float64), _DIGITS)
        if len(rows) > k:
            limit = np.partition(rounded, len(rounded) - k)[len(rounded) - k]
            chosen = rounded >= limit  # all equal ones, since the order of rows decides
            rows, rounded = rows[chosen], rounded[chosen]
        order = np.lexsort((rows, -rounded))[:k]
        found += [((segment, int(rows[at])), float(rounded[at])) for at in order]
    return sorted(found, key=lambda one: (-one[1], one[0]))[:k]


def rank(places: Sequence[Place], scores: npt.NDArray[np.float32]) -> Ranking:
    """Return all passages by their scores; the order of adding decides between equal ones.

    Example:
        >>> rank([(0, 7), (0, 3)], np.array([0.5, 0.5], np.float32))
        [((0, 3), 0.5), ((0, 7), 0.5)]
    """
    rounded = np.round(scores.astype(np.float64), _DIGITS).tolist()
    return sorted(zip(places, rounded, strict=True), key=lambda one: (-one[1], one[0]))


def fuse(
    scores: Mapping[str, npt.NDArray[np.float32]], weights: Mapping[str, float]
) -> npt.NDArray[np.float32]:
    """Return the weighted sum of the scores of several retrievers for the same passages.

    Those that have no upper limit (BM25's, by terms or by meaning) are divided by the highest first; the
    others are cosines.

    Example:
        >>> bm25, dense = np.array([8, 4], np.float32), np.array([0, 0.5], np.float32)
        >>> fuse({"bm25": bm25, "dense": dense}, {"bm25": 1, "dense": 0.5}).tolist()
        [1.0, 0.75]
    """
    total = np.zeros(len(next(iter(scores.values()))), np.float32)
    for name, values in scores.items():
        highest = float(values.max(initial=0)) if name in _UNLIMITED else 1.0
        total += weights[name] * values / (highest or 1.0)
    return total


def alike(vectors: npt.NDArray[np.float32], scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return for each passage its mean cosine with the best ones, itself left out.

    The best count by the third power of their scores, so that one far above the others is nearly alone.

    Args:
        vectors: (n, D) of the passages, of length 1.
        scores: (n,) which passages are the best.

    Example:
        >>> vectors = np.array([[1, 0], [0.8, 0.6], [0, 1]], np.float32)
        >>> alike(vectors, np.array([2, 0, 0], np.float32)).astype(float).round(2).tolist()
        [0.0, 0.8, 0.0]
    """
    chosen = np.argsort(-scores, kind="stable")[:_NUM_BEST]
    highest = float(scores.max(initial=0)) or 1.0
    weights = np.tile((scores[chosen] / highest) ** 3, (len(scores), 1))  # (n, best)
    weights[chosen, np.arange(len(chosen))] = 0
    cosines = vectors @ vectors[chosen].T  # (n, best)
    total = weights.sum(axis=1)
    return np.asarray((weights * cosines).sum(axis=1) / np.where(total > 0, total, 1), np.float32)


class WordScores(NamedTuple):
    """How well the words of a query are found in each of n passages.

    Attributes:
        nearest: (n,) the weighted mean over the query's words of the best cosine with a word of the passage.
            A cosine below 0.4 counts as 0: such a word is no match.
        often: (n,) BM25 by meaning: each word of the passage counts for a word of the query as far as their
            cosine is above 0.5, once if it is 1.
    """

    nearest: npt.NDArray[np.float32]
    often: npt.NDArray[np.float32]


def compare_words(
    query: npt.NDArray[np.float32],
    weights: npt.NDArray[np.float32],
    passages: Sequence[Quantised],
    lengths: npt.NDArray[np.float32],
) -> WordScores:
    """Compare the words of a query with those of passages (late interaction).

    Args:
        query: (Q, D) the vectors of the query's words, of length 1.
        weights: (Q,) how much each counts.
        passages: The vectors (T, D) of the words of each.
        lengths: (n,) of the passages, divided by the mean length of all.

    Example:
        >>> words = np.eye(2, dtype=np.float32)
        >>> passages = [Quantised.of(words[:1]), Quantised.of(words), Quantised.of(words[:0])]
        >>> found = compare_words(words, np.ones(2, np.float32), passages, np.ones(3, np.float32))
        >>> found.nearest.round(2).tolist(), found.often.round(2).tolist()
        ([0.5, 1.0, 0.0], [0.5, 1.0, 0.0])
    """
    scores = WordScores(np.zeros(len(passages), np.float32), np.zeros(len(passages), np.float32))
    if not len(query):
        return scores
    # Numbers of 7 bits: on processors without VNNI, sums of products of 8 and 8 bits would overflow.
    asked = Quantised.of(query, largest=63)
    numbers = torch.from_numpy(asked.numbers).T.contiguous()  # (D, Q)
    shares = weights / max(float(weights.sum()), _TINY)
    filled = [at for at, one in enumerate(passages) if len(one)]
    for part in _parts(filled, [len(passages[at]) for at in filled]):
        words = torch.from_numpy(np.concatenate([passages[at].numbers for at in part]))
        scales = np.concatenate([passages[at].scales for at in part]).astype(np.float32)
        cosines = torch._int_mm(words, numbers).float().numpy()  # (S, Q)
        cosines *= scales[:, None] * asked.scales.astype(np.float32)
        sizes = np.array([len(passages[at]) for at in part])
        starts = np.cumsum(sizes) - sizes
        highest = np.maximum.reduceat(cosines, starts, axis=0)  # (passages, Q)
        scores.nearest[part] = np.where(highest > _LEAST_COSINE, highest, 0) @ shares
        cosines -= _LEAST_SIMILAR
        np.maximum(cosines, 0, out=cosines)
        cosines /= 1 - _LEAST_SIMILAR
        counts = np.add.reduceat(cosines, starts, axis=0)  # (passages, Q)
        scores.often[part] = saturated(counts, lengths[part][:, None]) @ shares
    return scores


def _parts(rows: Sequence[int], sizes: Sequence[int]) -> Iterator[list[int]]:
    """Yield the rows in parts whose sizes add up to some thousands, as fits into a processor's cache."""
    part: list[int] = []
    total = 0
    for row, size in zip(rows, sizes, strict=True):
        if part and total + size > _WORDS_AT_ONCE:
            yield part
            part, total = [], 0
        part.append(row)
        total += size
    if part:
        yield part
