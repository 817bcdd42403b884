"""A segment: some documents with everything that is needed to find them, written once and never changed.

texts, ids               the documents; id-hashes, id-order find one by its name; digests tell changed ones
sentences                (n, 2) where each begins and ends in its document; sentence-starts of each document
passages                 (n, 3) the document, its first sentence and the one after the last (in the segment)
vectors, scales          of the passages, int8; graph.usearch of many
word-starts              the first token of each sentence; words, word-scales their vectors (if wanted)
terms, posting-…         see postings; fields, field-… see metadata
"""

import hashlib
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.errors import DataError, MissingExtra
from elmokit.search.documents import Document
from elmokit.search.graph_check import check_graph
from elmokit.search.index_arrays import Array, Arrays, check_files
from elmokit.search.metadata import Metadata
from elmokit.search.postings import Bools, Postings
from elmokit.search.quantised import Floats, Quantised

GRAPH = "graph.usearch"
GRAPH_FROM = 100_000  # passages; fewer are compared one by one
_FEW = 8192  # vectors that are kept as float32; of more, the nearest by int8 are found first
_DENSE_LIMIT = 0.1  # share of live passages below which all of them are compared


def id_hash(name: str) -> int:
    """Return a number of 64 bits for the name of a document."""
    return int.from_bytes(hashlib.blake2b(name.encode(errors="replace"), digest_size=8).digest(), "little")


def document_digest(document: Document) -> int:
    """Return a number of 64 bits for the content of a document."""
    content = repr((document.text, sorted(document.metadata.items())))
    return id_hash(content)


class Segment:
    """A segment on disk, mapped into memory.

    Args:
        folder: Where it is.
        records: Size and checksum of each of its files.
        deleted: Which documents are deleted, (documents,); None for none.
        word_dim: The size of the vectors of words; 0 if they are not stored.
        dim: The size of the vectors of passages.

    Raises:
        DataError: A file is damaged; the message names it.
    """

    def __init__(
        self, folder: Path, records: dict[str, Any], deleted: Bools | None, *, dim: int, word_dim: int
    ) -> None:
        self.folder, self.records = folder, records
        check_files(folder, records)
        arrays = Arrays(folder)
        self.texts, self.ids = arrays.texts("texts"), arrays.texts("ids")
        count = len(self.ids)
        self.digests = arrays.get("digests", "uint64", count)
        self._hashes = arrays.get("id-hashes", "uint64", count)
        self._order = arrays.below("id-order", "int32", max(1, count), count)
        if len(self.texts) != count:
            raise DataError(f"{folder}: {len(self.texts)} texts and {count} names; build the index again")
        self.sentences = arrays.get("sentences", "int32", None, 2)
        num_sentences = len(self.sentences)
        self.sentence_starts = arrays.starts("sentence-starts", num_sentences, count)
        self.passages = arrays.get("passages", "int32", None, 3)
        if len(self.passages):
            low, high = self.passages.min(axis=0), self.passages.max(axis=0)
            if low.min() < 0 or high[0] >= count or high[1:].max() > num_sentences:
                raise DataError(
                    f"{folder / 'passages.npy'} points beyond the sentences; build the index again"
                )
        size = len(self.passages)
        self.vectors = Quantised(
            arrays.get("vectors", "int8", size, dim), arrays.get("scales", "float16", size)
        )
        self.words: Quantised | None = None
        self.word_starts: Array | None = None
        if word_dim:
            numbers = arrays.get("words", "int8", None, word_dim)
            self.words = Quantised(numbers, arrays.get("word-scales", "float16", len(numbers)))
            self.word_starts = arrays.starts("word-starts", len(numbers), num_sentences)
        self.postings = Postings.open(arrays, size)
        self.metadata = Metadata(arrays, count)
        if deleted is not None and deleted.shape != (count,):
            raise DataError(f"{folder}: {count} documents, but {deleted.shape} marks of deletion")
        self.deleted = deleted

    @property
    def num_live(self) -> int:
        """Return the number of documents that are not deleted."""
        return len(self.ids) - (0 if self.deleted is None else int(self.deleted.sum()))

    @cached_property
    def live(self) -> Bools | None:
        """Return which passages are not deleted; None for all."""
        if self.deleted is None:
            return None
        return ~self.deleted[self.passages[:, 0]]

    def find(self, name: str) -> int | None:
        """Return the number of a live document, by its name."""
        wanted = np.uint64(id_hash(name))
        at = int(np.searchsorted(self._hashes, wanted))
        while at < len(self._hashes) and self._hashes[at] == wanted:
            number = int(self._order[at])
            if self.ids[number] == name and (self.deleted is None or not self.deleted[number]):
                return number
            at += 1
        return None

    def text_of(self, passage: int) -> tuple[str, int]:
        """Return the text of a passage, and where it begins in its document."""
        document, first, end = self.passages[passage].tolist()
        spans = self.sentences[first:end]
        if not len(spans):
            return "", 0
        start = int(spans[0, 0])
        return self.texts[document][start : int(spans[-1, 1])], start

    def words_of(self, passage: int) -> tuple[int, int]:
        """Return the range of a passage's tokens in `words`."""
        assert self.word_starts is not None
        _, first, end = self.passages[passage].tolist()
        return int(self.word_starts[first]), int(self.word_starts[max(first, end)])

    def nearest(self, query: Floats, k: int, allowed: Bools | None) -> tuple[npt.NDArray[np.int64], Floats]:
        """Return the passages with the highest cosines to a vector of length 1, and these."""
        share = 1.0 if allowed is None else float(allowed.mean()) if allowed.size else 0.0
        if len(self.vectors) > _FEW and share > _DENSE_LIMIT:
            candidates = self._by_numbers(query, int(k / share * 1.5) + 10)
            candidates = candidates if allowed is None else candidates[allowed[candidates]]
        else:
            candidates = np.arange(len(self.vectors)) if allowed is None else np.flatnonzero(allowed)
        parts = [
            self._floats(candidates[start : start + _FEW]) @ query
            for start in range(0, len(candidates), _FEW)
        ]
        return candidates, np.concatenate([np.zeros(0, np.float32), *parts])

    def _floats(self, rows: npt.NDArray[np.int64]) -> Floats:
        if len(self.vectors) > _FEW:
            return self.vectors.floats(rows)
        return self._all_floats if len(rows) == len(self.vectors) else self._all_floats[rows]

    @cached_property
    def _all_floats(self) -> Floats:
        return self.vectors.floats()

    def _by_numbers(self, query: Floats, k: int) -> npt.NDArray[np.int64]:
        """Return the passages with the highest cosines of the int8 numbers: by the graph, or of all."""
        numbers = Quantised.of(query[None]).numbers
        k = min(k, len(self.vectors))
        if GRAPH in self.records:
            found = self._graph.search(numbers[0], k).keys
        else:
            module = usearch()
            metric = module.MetricKind.Cos
            found = module.search(self.vectors.numbers, numbers, k, metric, exact=True, threads=1).keys
        rows = np.ravel(found).astype(np.int64)
        return np.sort(rows[(rows >= 0) & (rows < len(self.vectors))])

    @cached_property
    def _graph(self) -> Any:  # noqa: ANN401 (usearch has no types)
        check_files(self.folder, {GRAPH: self.records[GRAPH]}, thorough=True)
        path = self.folder / GRAPH
        try:
            check_graph(path, *self.vectors.numbers.shape)
            return usearch().Index.restore(str(path), view=True)
        except (OSError, ValueError, RuntimeError) as error:
            raise DataError(f"{path} cannot be read ({error}); build the index again") from error


def usearch() -> Any:  # noqa: ANN401 (it has no types)
    """Import usearch.

    Raises:
        MissingExtra: It is not installed.
    """
    try:
        import usearch.index
    except ImportError as error:
        raise MissingExtra("usearch", "search", "searching many passages") from error
    return usearch.index


def write_graph(folder: Path, vectors: Quantised) -> None:
    """Write the graph of near neighbours of many vectors; one thread, so that it is always the same."""
    if len(vectors) < GRAPH_FROM:
        return
    graph = usearch().Index(ndim=vectors.numbers.shape[1], metric="cos", dtype="i8", expansion_search=128)
    graph.add(np.arange(len(vectors)), vectors.numbers, threads=1)
    graph.save(str(folder / GRAPH))
