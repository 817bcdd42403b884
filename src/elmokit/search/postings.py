"""BM25 over several segments, whose scores are those of one index over all live passages.

    score(q, d) = Σ over terms t of q: idf(t) · n(t, d) · (k₁ + 1) / (n(t, d) + k₁ (1 − b + b |d| / mean |d|))
    idf(t) = ln(1 + (N − df(t) + ½) / (df(t) + ½))

as in Lucene and `bm25s`. Numbers of documents and lengths are counted at query time, without the deleted
ones, so that segments, deletions and merges do not change a score.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from elmokit.search.index_arrays import Array, Arrays, Texts, text_arrays

K1, B = 1.2, 0.75
_MOST_COUNTED = 65_535
_MANY = 100_000  # passages

Bools = npt.NDArray[np.bool_]


class PostingsBuilder:
    """Collects the terms of passages."""

    def __init__(self) -> None:
        self._postings: dict[str, list[tuple[int, int]]] = {}
        self._lengths: list[int] = []

    def add(self, terms: Sequence[str]) -> None:
        """Add the next passage."""
        number = len(self._lengths)
        self._lengths.append(len(terms))
        for term, count in Counter(terms).items():
            self._postings.setdefault(term, []).append((number, min(count, _MOST_COUNTED)))

    def arrays(self) -> dict[str, Array]:
        """Return what is stored."""
        terms = sorted(self._postings, key=lambda term: term.encode(errors="replace"))
        found = [self._postings[term] for term in terms]
        flat = np.array([pair for pairs in found for pair in pairs], np.int64).reshape(-1, 2)
        return {
            **text_arrays("terms", terms),
            "posting-starts": np.cumsum([0, *map(len, found)], dtype=np.int64),
            "posting-passages": flat[:, 0].astype(np.int32),
            "posting-counts": flat[:, 1].astype(np.uint16),
            "lengths": np.array(self._lengths, np.int32),
        }


@dataclass(frozen=True)
class Postings:
    """The terms of the passages of a segment."""

    terms: Texts
    starts: Array
    passages: Array
    counts: Array
    lengths: Array

    @classmethod
    def open(cls, arrays: Arrays, num_passages: int) -> "Postings":
        """Map the arrays of a segment.

        Raises:
            DataError: A file is damaged.
        """
        terms = arrays.texts("terms")
        passages = arrays.below("posting-passages", "int32", max(1, num_passages), None)
        return cls(
            terms,
            arrays.starts("posting-starts", len(passages), len(terms)),
            passages,
            arrays.get("posting-counts", "uint16", len(passages)),
            arrays.below("lengths", "int32", 1 << 31, num_passages),
        )

    def find(self, term: str, live: Bools | None) -> tuple[Array, Array]:
        """Return the live passages that have a term, and how often they have it."""
        number = self.terms.find(term)
        if number is None:
            return self.passages[:0], self.counts[:0]
        place = slice(*self.starts[number : number + 2].tolist())
        passages, counts = self.passages[place], self.counts[place]
        if live is None:
            return passages, counts
        kept = live[passages]
        return passages[kept], counts[kept]


class BM25:
    """BM25 over segments.

    Args:
        postings: The segments.
        live: Which passages of each are not deleted; None for all.
    """

    def __init__(self, postings: Sequence[Postings], live: Sequence[Bools | None]) -> None:
        self._parts = list(zip(postings, live, strict=True))
        lengths = [one.lengths if alive is None else one.lengths[alive] for one, alive in self._parts]
        self._count = sum(map(len, lengths))
        self._mean = max(sum(int(one.sum(dtype=np.int64)) for one in lengths) / max(1, self._count), 1e-9)

    def idf(self, documents: int) -> float:
        """Return how much a term counts that so many passages have."""
        return math.log(1 + (self._count - documents + 0.5) / (documents + 0.5))

    def rarity(self, terms: Sequence[str]) -> float:
        """Return the idf of the rarest of some terms; 0 without terms."""
        found = (sum(len(one.find(term, alive)[0]) for one, alive in self._parts) for term in terms)
        return max(map(self.idf, found), default=0.0)

    def relative_length(self, segment: int, passage: int) -> float:
        """Return the length of a passage of a segment, divided by the mean length of all."""
        return float(self._parts[segment][0].lengths[passage]) / self._mean

    def scores(self, terms: Iterable[str]) -> list[npt.NDArray[np.float32]]:
        """Return the scores of all passages of each segment; those of deleted ones are 0.

        Of many passages, a term that is in a tenth of them adds to the scores of those only that a rarer term
        of the query has found: the others could not become the best.

        Args:
            terms: Those of the query; one that occurs twice counts twice.
        """
        scores = [np.zeros(len(one.lengths), np.float32) for one, _ in self._parts]
        found = []
        for term, times in Counter(terms).items():
            places = [one.find(term, alive) for one, alive in self._parts]
            found.append((sum(len(passages) for passages, _ in places), times, places))
        some = False
        for documents, times, places in sorted(found, key=lambda one: one[0]):
            few = some and self._count >= _MANY and documents > self._count / 10
            for (one, _), (passages, counts), score in zip(self._parts, places, scores, strict=True):
                if few:
                    chosen = _positions(passages, np.flatnonzero(score))
                    passages, counts = passages[chosen], counts[chosen]
                lengths = one.lengths[passages].astype(np.float32) / np.float32(self._mean)
                often = saturated(counts.astype(np.float32), lengths)
                score[passages] += times * self.idf(documents) * often
            some = some or documents > 0
        return scores


def saturated(counts: npt.NDArray[np.float32], lengths: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return how much a term counts that a passage has so often: more and more slowly, in long ones less.

    Args:
        counts: How often passages have the term.
        lengths: Of the passages, divided by the mean length of all.

    Example:
        >>> saturated(np.array([0, 1, 2], np.float32), np.ones(3, np.float32)).round(3).tolist()
        [0.0, 1.0, 1.375]
    """
    return np.asarray(counts * (K1 + 1) / (counts + K1 * (1 - B + B * lengths)), np.float32)


def _positions(passages: Array, wanted: Array) -> Array:
    """Return where those of the wanted passages are that occur; both are sorted."""
    at = np.searchsorted(passages, wanted)
    at, wanted = at[at < len(passages)], wanted[at < len(passages)]
    found: Array = at[passages[at] == wanted]
    return found
