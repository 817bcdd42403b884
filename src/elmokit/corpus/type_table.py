"""Merge the types of all chunks into one table with an id for every spelling, the vocabulary first.

Types are merged bucket by bucket, so that only the spellings of a few buckets are in memory. Each type first
gets a *place*, its position in the order of merging. When all types are counted, the vocabulary is known; its
ids come first, and the other types follow in the order of their places.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from elmokit.corpus.chunks import NUM_BUCKETS, Chunk
from elmokit.corpus.corpus_settings import PrepareSettings
from elmokit.corpus.selection import Selection
from elmokit.errors import DataError
from elmokit.text import SPECIAL_TOKENS, UNKNOWN_TOKEN, Vocabulary

Integers = npt.NDArray[np.int64]

ENTRIES_AT_ONCE = 1_000_000  # types of all chunks; about 300 MB if all are distinct
_UNKNOWN = SPECIAL_TOKENS.index(UNKNOWN_TOKEN)
_UNKNOWN_SPELLING = UNKNOWN_TOKEN.encode()
_MOST_TYPES = 2**31 - 1  # ids are int32


class TypeTable:
    """The merged types of all chunks.

    Args:
        chunks: All chunks.
        selection: Which of their sentences count.
        settings: The settings of the preparation.
        given: A vocabulary to use as it is, or None.
        folder: An empty folder for temporary files.
        advance: Called for each chunk and each group of buckets that is done.

    Attributes:
        tokens: The tokens of the vocabulary.
        counts: How often each row of the vocabulary occurs in the training part, (V,).
        num_types: The number of types, including rows of the vocabulary that do not occur.
        num_seen: The number of distinct spellings in the text.
    """

    def __init__(
        self,
        chunks: Sequence[Chunk],
        selection: Selection,
        settings: PrepareSettings,
        given: Vocabulary | None,
        folder: Path,
        advance: Callable[[], None],
    ) -> None:
        self._folder = folder
        self._group_bytes: list[int] = []
        choose = _Frequent(settings) if given is None else _Given(given)
        sentences = tokens = 0
        for number, chunk in enumerate(chunks):
            sentences_in, tokens_in = self._count(number, chunk, selection)
            sentences, tokens = sentences + sentences_in, tokens + tokens_in
            advance()
        self.num_seen = 0
        with (folder / "spellings").open("wb") as file:
            for first, last in _groups(chunks):
                spellings, counts = self._merge(chunks, first, last)
                choose.add(spellings, counts, self.num_seen)
                self.num_seen += len(spellings)
                self._group_bytes.append(file.write(b"\n".join(spellings)))
                advance()
        self.tokens, places, rows, self.counts = choose.finish()
        order = np.argsort(places)
        self._places, self._rows = places[order], rows[order]
        self.num_types = len(self.tokens) + self.num_seen - len(places)
        self.counts[: _UNKNOWN + 1] = [sentences, sentences, tokens - self.counts[_UNKNOWN + 1 :].sum()]

    def ids(self, number: int) -> npt.NDArray[np.int32]:
        """Return the corpus ids of the types of a chunk."""
        places = np.fromfile(self._folder / f"{number}.places", dtype=np.int32)
        before = np.searchsorted(self._places, places)  # types of the vocabulary at smaller places
        ids = places - before + len(self.tokens)
        if len(self._places):
            nearest = np.minimum(before, len(self._places) - 1)
            found = self._places[nearest] == places
            ids[found] = self._rows[nearest[found]]
        return ids.astype(np.int32)

    def write(self, spellings: Path, starts: Path) -> None:
        """Write the spellings of all types, one after another, and where each starts."""
        with spellings.open("wb") as text_file, starts.open("wb") as starts_file:
            starts_file.write(np.zeros(1, "<i8").tobytes())
            for group in self._spellings():
                ends = text_file.tell() + np.cumsum([len(spelling) for spelling in group], dtype=np.int64)
                starts_file.write(ends.astype("<i8").tobytes())
                text_file.write(b"".join(group))

    def _spellings(self) -> Iterator[list[bytes]]:
        """Yield the spellings in the order of their ids, in groups."""
        yield [token.encode() for token in self.tokens]
        first = 0
        with (self._folder / "spellings").open("rb") as file:
            for size in self._group_bytes:
                group = file.read(size).split(b"\n")
                inside = np.searchsorted(self._places, [first, first + len(group)])
                vocabulary = set((self._places[slice(*inside)] - first).tolist())
                yield [spelling for place, spelling in enumerate(group) if place not in vocabulary]
                first += len(group)

    def _count(self, number: int, chunk: Chunk, selection: Selection) -> tuple[int, int]:
        """Count the types of a chunk in the training part; return its numbers of sentences and tokens."""
        train, _ = selection.masks(number)
        tokens = chunk.array("tokens")[np.repeat(train, chunk.array("lengths"))]
        counts = np.bincount(tokens, minlength=chunk.type_starts[-1])
        counts.astype(np.int32).tofile(self._folder / f"{number}.counts")
        return int(np.count_nonzero(train)), len(tokens)

    def _merge(self, chunks: Sequence[Chunk], first: int, last: int) -> tuple[list[bytes], Integers]:
        """Merge the types of some buckets; return their spellings and counts in the order of their places."""
        merged: defaultdict[bytes, int] = defaultdict(None, {})
        merged.default_factory = merged.__len__
        counts = np.zeros(sum(_size(chunk, first, last) for chunk in chunks), dtype=np.int64)
        for number, chunk in enumerate(chunks):
            size = _size(chunk, first, last)
            numbers = np.fromiter(map(merged.__getitem__, chunk.spellings(first, last)), np.int32, size)
            if self.num_seen + len(merged) > _MOST_TYPES:
                raise DataError(
                    f"the text has more than {_MOST_TYPES:,} distinct tokens, which no language has; "
                    "check the tokenizer and the files"
                )
            start = 4 * int(chunk.type_starts[first])
            counts[numbers] += np.fromfile(self._folder / f"{number}.counts", np.int32, size, offset=start)
            with (self._folder / f"{number}.places").open("ab") as file:
                file.write((numbers + np.int32(self.num_seen)).tobytes())
        merged.default_factory = None  # break the reference cycle, or the memory is freed late
        return list(merged), counts[: len(merged)]


def _size(chunk: Chunk, first: int, last: int) -> int:
    return int(chunk.type_starts[last] - chunk.type_starts[first])


def _groups(chunks: Sequence[Chunk]) -> Iterator[tuple[int, int]]:
    """Yield ranges of buckets with at most `ENTRIES_AT_ONCE` types each, or of one bucket."""
    sizes = np.zeros(NUM_BUCKETS, dtype=np.int64)
    for chunk in chunks:
        sizes += np.diff(chunk.type_starts)
    first = 0
    entries = 0
    for bucket, size in enumerate(sizes.tolist()):
        if entries and entries + size > ENTRIES_AT_ONCE:
            yield first, bucket
            first, entries = bucket, 0
        entries += size
    if entries:
        yield first, NUM_BUCKETS


class _Frequent:
    """The vocabulary of the most frequent types, sorted by falling frequency, then by spelling."""

    def __init__(self, settings: PrepareSettings) -> None:
        self._min_count = settings.min_count
        self._size = settings.max_vocabulary - len(SPECIAL_TOKENS)
        self._best: list[tuple[int, bytes, int]] = []
        self._unknown_place: list[int] = []  # the place of `<UNK>`, if it occurs in the text

    def add(self, spellings: Sequence[bytes], counts: Integers, first_place: int) -> None:
        """Consider types whose places start at `first_place`."""
        numbers = np.flatnonzero(counts >= self._min_count)
        if len(numbers) > self._size + 1:  # one more, since `<UNK>` may be among them
            least = np.partition(counts[numbers], -self._size - 1)[-self._size - 1]
            numbers = numbers[counts[numbers] >= least]
        self._best += [(-int(counts[n]), spellings[n], first_place + n) for n in numbers.tolist()]
        if _UNKNOWN_SPELLING in spellings:
            self._unknown_place = [first_place + spellings.index(_UNKNOWN_SPELLING)]
            self._best = [entry for entry in self._best if entry[1] != _UNKNOWN_SPELLING]
        self._best = sorted(self._best)[: self._size]

    def finish(self) -> tuple[tuple[str, ...], Integers, Integers, Integers]:
        """Return the tokens, the places of those that occur, their rows, and the counts of all rows."""
        tokens = (*SPECIAL_TOKENS, *(spelling.decode() for _, spelling, _ in self._best))
        places = [place for _, _, place in self._best] + self._unknown_place
        rows = [*range(len(SPECIAL_TOKENS), len(tokens)), _UNKNOWN][: len(places)]
        counts = [0] * len(SPECIAL_TOKENS) + [-count for count, _, _ in self._best]
        return tokens, np.array(places, np.int64), np.array(rows, np.int64), np.array(counts, np.int64)


class _Given:
    """A given vocabulary, used as it is."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._tokens = vocabulary.tokens
        self._row_of = {token.encode(): vocabulary.id(token) for token in vocabulary.tokens}
        self._counts = np.zeros(len(vocabulary), dtype=np.int64)
        self._places: list[int] = []
        self._rows: list[int] = []

    def add(self, spellings: Sequence[bytes], counts: Integers, first_place: int) -> None:
        """Consider types whose places start at `first_place`."""
        for number, row in enumerate(map(self._row_of.get, spellings)):
            if row is not None:
                self._places.append(first_place + number)
                self._rows.append(row)
                self._counts[row] = counts[number]

    def finish(self) -> tuple[tuple[str, ...], Integers, Integers, Integers]:
        """Return the tokens, the places of those that occur, their rows, and the counts of all rows."""
        return self._tokens, np.array(self._places, np.int64), np.array(self._rows, np.int64), self._counts
