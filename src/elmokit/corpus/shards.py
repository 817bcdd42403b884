"""The chunks again, now with the ids of the corpus: two plain files a shard, which are mapped to be read.

`00000.tokens` are int32, `00000.starts` int64, little-endian and without a header.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from elmokit.base import open_flushed
from elmokit.errors import DataError

BEGIN, END = 0, 1  # ids of `<S>` and `</S>`
SHARD_TOKENS = 4_000_000
# A mapped file holds a file handle, of which a process has about a thousand.
_MOST_SHARDS = 64


class Shard:
    """Consecutive sentences of a part of the corpus, in the order of the text.

    Args:
        stem: The path of its two files, without their endings.
        num_tokens: How many ids it has, boundaries among them.
        num_sentences: How many sentences.

    Raises:
        DataError: A file is missing or of the wrong size.
    """

    def __init__(self, stem: Path, num_tokens: int, num_sentences: int) -> None:
        self._tokens_file, self._starts_file = stem.with_suffix(".tokens"), stem.with_suffix(".starts")
        self.num_tokens = num_tokens
        self.num_sentences = num_sentences
        check_size(self._tokens_file, 4 * num_tokens)
        check_size(self._starts_file, 8 * (num_sentences + 1))

    @cached_property
    def tokens(self) -> npt.NDArray[np.int32]:
        """Type ids of all sentences one after another, each `<S> … </S>` (0 … 1); mapped."""
        return np.memmap(self._tokens_file, dtype="<i4", mode="r")

    @cached_property
    def starts(self) -> npt.NDArray[np.int64]:
        """Where each sentence starts in `tokens`, and at last their number; (sentences + 1,), mapped."""
        return np.memmap(self._starts_file, dtype="<i8", mode="r")


def check_size(path: Path, size: int) -> None:
    """Raise a DataError unless a file of the prepared corpus is there with all its bytes."""
    found = path.stat().st_size if path.exists() else None
    if found != size:
        state = "is missing" if found is None else f"has {found:,} bytes, expected {size:,}"
        raise DataError(f"{path} {state}; copy the prepared corpus again, or prepare it anew")


class ShardWriter:
    """Writes the sentences of one part into shards of about equal size.

    Args:
        folder: Where the shards go; it is made when there is one.
        total_tokens: How many words and boundaries will come, about.

    Attributes:
        shards: Tokens and sentences of each finished shard.
    """

    def __init__(self, folder: Path, total_tokens: int) -> None:
        self._folder = folder
        self._least_tokens = max(SHARD_TOKENS, -(-total_tokens // _MOST_SHARDS))
        self._files = ExitStack()
        self._open: tuple[BinaryIO, BinaryIO] | None = None
        self.shards: list[Mapping[str, int]] = []
        self._tokens = self._sentences = 0

    def add(self, words: npt.NDArray[np.int32], lengths: npt.NDArray[np.int32]) -> None:
        """Write sentences, given their words one after another and how many each has."""
        if not len(lengths):
            return
        tokens_file, starts_file = self._open or self._begin()
        ends = np.cumsum(lengths + 2, dtype=np.int64)  # (sentences,)
        starts = ends - lengths - 2
        inside = np.ones(ends[-1], dtype=bool)
        inside[starts] = inside[ends - 1] = False
        tokens = np.full(ends[-1], END, dtype="<i4")
        tokens[starts] = BEGIN
        tokens[inside] = words
        tokens_file.write(tokens.tobytes())
        starts_file.write((self._tokens + starts).astype("<i8").tobytes())
        self._tokens += len(tokens)
        self._sentences += len(lengths)
        if self._tokens >= self._least_tokens:
            self.finish()

    def finish(self) -> None:
        """Close the open shard, if there is one."""
        if self._open is None:
            return
        self._open[1].write(np.array([self._tokens], dtype="<i8").tobytes())
        self._files.close()
        self.shards.append({"tokens": self._tokens, "sentences": self._sentences})
        self._open = None
        self._tokens = self._sentences = 0

    def _begin(self) -> tuple[BinaryIO, BinaryIO]:
        self._folder.mkdir(exist_ok=True)
        stem = shard_stem(self._folder, len(self.shards))
        tokens, starts = (
            self._files.enter_context(open_flushed(stem.with_suffix(ending)))
            for ending in (".tokens", ".starts")
        )
        self._open = (tokens, starts)
        return self._open


def shard_stem(folder: Path, number: int) -> Path:
    """Return the path of a shard without its endings."""
    return folder / f"{number:05d}"
