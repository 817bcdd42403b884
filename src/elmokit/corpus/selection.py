"""Choose the sentences that are kept and those that are held out, once all chunks are there."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from elmokit.corpus.chunks import Chunk
from elmokit.corpus.corpus_settings import PrepareSettings

Mask = npt.NDArray[np.bool_]

_HELDOUT_TOKENS = 100_000  # enough to measure perplexity to about one percent
_WORTH_HOLDING_OUT = 10  # documents; with fewer, all are needed for training
_HASHES_AT_ONCE = 8_000_000


class Selection:
    """The sentences of each chunk that belong to the training part and to the held-out part.

    Every n-th document is held out, which needs no memory and no random numbers.

    Args:
        chunks: All chunks.
        settings: The settings of the preparation.

    Attributes:
        num_duplicates: The number of sentences dropped as duplicates.
    """

    def __init__(self, chunks: Sequence[Chunk], settings: PrepareSettings) -> None:
        own = [chunk for chunk in chunks if not chunk.facts["heldout"]]
        self._first_sentence = _running([chunk.facts["sentences"] for chunk in chunks])
        self._first_document = _running([chunk.facts["documents"] for chunk in chunks])
        num_sentences = sum(chunk.facts["sentences"] for chunk in chunks)
        self._unique = _first_occurrences(own, num_sentences) if settings.deduplicate else None
        self.num_duplicates = 0 if self._unique is None else int(np.count_nonzero(~self._unique))
        self._chunks = chunks
        self._period = 0
        if settings.heldout_share and not settings.heldout:
            documents = sum(chunk.facts["documents"] for chunk in own)
            tokens = sum(int(chunk.array("lengths")[self._kept(n)].sum()) for n, chunk in enumerate(own))
            self._period = max(round(1 / settings.heldout_share), -(-tokens // _HELDOUT_TOKENS))
            if documents >= _WORTH_HOLDING_OUT:
                self._period = min(self._period, documents)

    def masks(self, number: int) -> tuple[Mask, Mask]:
        """Return which sentences of a chunk are training text, and which are held out."""
        chunk = self._chunks[number]
        kept = self._kept(number)
        if chunk.facts["heldout"]:
            return np.zeros_like(kept), kept
        if not self._period:
            return kept, np.zeros_like(kept)
        documents = self._first_document[number] + np.arange(chunk.facts["documents"])
        # Starting from the middle leaves something to train on even if there are few documents.
        heldout = np.repeat(documents % self._period == self._period // 2, chunk.array("documents"))
        return kept & ~heldout, kept & heldout

    def _kept(self, number: int) -> Mask:
        size = self._chunks[number].facts["sentences"]
        if self._unique is None:
            return np.ones(size, dtype=bool)
        start = self._first_sentence[number]
        return self._unique[start : start + size]


def _running(sizes: Sequence[int]) -> list[int]:
    """Return where each of consecutive ranges starts."""
    return [0, *np.cumsum(sizes).tolist()][:-1]


def _first_occurrences(chunks: Sequence[Chunk], num_sentences: int) -> Mask:
    """Find the sentences that are no duplicates; those of given held-out text are not compared.

    The hashes are compared one range of values after another, so that memory is bounded.
    """
    unique = np.ones(num_sentences, dtype=bool)
    passes = max(1, -(-num_sentences // _HASHES_AT_ONCE))
    edges = [(2**64 * n) // passes for n in range(passes)] + [2**64]
    for low, high in pairwise(edges):
        values, places = [], []
        start = 0
        for chunk in chunks:
            hashes = chunk.array("hashes")
            inside = np.flatnonzero((hashes >= np.uint64(low)) & (hashes <= np.uint64(high - 1)))
            values.append(hashes[inside])
            places.append(inside + start)
            start += len(hashes)
        place = np.concatenate(places)
        _, first = np.unique(np.concatenate(values), return_index=True)
        repeated = np.ones(len(place), dtype=bool)
        repeated[first] = False
        unique[place[repeated]] = False
    return unique
