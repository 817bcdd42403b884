"""Shards: the sentences of a prepared corpus as ids, in plain files that are memory-mapped when read.

A shard is three files without a header, little-endian: `00000.tokens` (int32), `00000.starts` and
`00000.documents` (int64). A shard starts with a document and holds whole documents.
"""

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.errors import DataError

BEGIN, END = 0, 1  # the ids of `<S>` and `</S>`
SHARD_TOKENS = 4_000_000
_FILES = {".tokens": "<i4", ".starts": "<i8", ".documents": "<i8"}
# A memory-mapped file holds a file handle, of which a process has about a thousand.
_MOST_SHARDS = 64


class Shard:
    """Consecutive sentences of a part of the corpus, in the order of the text.

    Args:
        stem: The path of its files, without their endings.
        num_tokens: The number of ids, sentence boundaries included.
        num_sentences: The number of sentences.
        num_documents: The number of documents.

    Raises:
        DataError: A file is missing or has the wrong size.
    """

    def __init__(self, stem: Path, *, num_tokens: int, num_sentences: int, num_documents: int) -> None:
        self._files = [stem.with_suffix(ending) for ending in _FILES]
        self.num_tokens = num_tokens
        self.num_sentences = num_sentences
        self.num_documents = num_documents
        sizes = (4 * num_tokens, 8 * (num_sentences + 1), 8 * (num_documents + 1))
        for file, size in zip(self._files, sizes, strict=True):
            check_size(file, size)

    @cached_property
    def tokens(self) -> npt.NDArray[np.int32]:
        """Type ids of all sentences, one after another, each `<S> … </S>` (0 … 1)."""
        return np.memmap(self._files[0], dtype="<i4", mode="r")

    @cached_property
    def starts(self) -> npt.NDArray[np.int64]:
        """Where each sentence starts in `tokens`, then the number of tokens; (num_sentences + 1,)."""
        return np.memmap(self._files[1], dtype="<i8", mode="r")

    @cached_property
    def documents(self) -> npt.NDArray[np.int64]:
        """The first sentence of each document, then the number of sentences; (num_documents + 1,).

        The sentences of document `d` are those from `documents[d]` up to, not including, `documents[d + 1]`.
        """
        return np.memmap(self._files[2], dtype="<i8", mode="r")


def check_size(path: Path, size: int) -> None:
    """Raise a DataError unless a file of the prepared corpus exists with all its bytes."""
    found = path.stat().st_size if path.exists() else None
    if found != size:
        state = "is missing" if found is None else f"has {found:,} bytes, expected {size:,}"
        raise DataError(f"{path} {state}; copy the prepared corpus again, or prepare the text again")


class ShardWriter:
    """Writes the sentences of one part of the corpus into shards of about equal size.

    Args:
        folder: Where the shards go; it is created with the first one.
        total_tokens: About how many words and boundaries there will be.

    Attributes:
        shards: The counts of each shard, by the names that `Shard` takes.
    """

    def __init__(self, folder: Path, total_tokens: int) -> None:
        self._folder = folder
        self._least_tokens = max(SHARD_TOKENS, -(-total_tokens // _MOST_SHARDS))
        self.shards: list[dict[str, int]] = []

    def add(
        self,
        words: npt.NDArray[np.int32],
        lengths: npt.NDArray[np.int32],
        documents: npt.NDArray[np.integer[Any]],
    ) -> None:
        """Write whole documents.

        Args:
            words: The words of all sentences, one after another.
            lengths: The number of words of each sentence, 1 or more.
            documents: The number of sentences of each document, 1 or more.
        """
        if not len(lengths):
            return
        if not self.shards or self.shards[-1]["num_tokens"] >= self._least_tokens:
            self._folder.mkdir(exist_ok=True)
            self.shards.append({"num_tokens": 0, "num_sentences": 0, "num_documents": 0})
            self._append(np.zeros(0), np.zeros(1), np.zeros(1))
        ends = np.cumsum(lengths, dtype=np.int64)  # (sentences,)
        boundaries = np.stack([ends - lengths, ends], axis=1)  # (sentences, 2)
        tokens = np.insert(words, boundaries.ravel(), np.tile([BEGIN, END], len(lengths)))
        shard = self.shards[-1]
        ends += 2 * np.arange(1, len(ends) + 1)
        self._append(tokens, shard["num_tokens"] + ends, shard["num_sentences"] + np.cumsum(documents))
        for name, added in zip(shard, (tokens, lengths, documents), strict=True):
            shard[name] += len(added)

    def _append(self, *arrays: npt.NDArray[Any]) -> None:
        stem = shard_stem(self._folder, len(self.shards) - 1)
        for (ending, kind), array in zip(_FILES.items(), arrays, strict=True):
            with stem.with_suffix(ending).open("ab") as file:
                file.write(array.astype(kind, copy=False).tobytes())


def shard_stem(folder: Path, number: int) -> Path:
    """Return the path of a shard without its endings."""
    return folder / f"{number:05d}"
