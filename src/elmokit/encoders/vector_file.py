r"""Files of word vectors: text (GloVe; word2vec and fastText with a header), word2vec's binary, and our own.

text      [words dimension \n]  word number number … \n
binary    words dimension \n  then for each word: its bytes, a blank, float32 numbers, and perhaps \n
own       the numbers as .npy, the words as a list in a .json beside it, because words may contain blanks
"""

import re
import struct
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from elmokit.base import draft_file, map_array, open_plain, parse_count, parse_json, shown, write_json
from elmokit.errors import DataError
from elmokit.text import read_lines

_MOST_DIMENSIONS = 100_000
_HEADER = re.compile(r"\s*[+-]?\d+\s+[+-]?\d+\s*")
_FASTTEXT_MAGIC = struct.pack("<i", 793712314)


@dataclass(frozen=True)
class WordVectors:
    """The row of each word, in order, and the table (V, D)."""

    rows: dict[str, int]
    table: npt.NDArray[np.float32]


def read_word_vectors(path: str | Path) -> WordVectors:
    """Read a file of vectors; `.bin` and `.bin.gz` are binary, `.npy` our own, others text.

    If a word occurs twice, its first vector counts.

    Raises:
        DataError: The file does not exist or is not in its format; the message names the line or word.
    """
    if str(path).endswith((".bin", ".bin.gz")):
        return _read_binary(Path(path))
    if str(path).endswith(".npy"):
        return _read_own(Path(path))
    return _read_text(path)


def write_word_vectors(vectors: WordVectors, path: Path) -> None:
    """Write our own format: `path`, which ends in .npy, and the words beside it."""
    with draft_file(path) as draft, draft.open("wb") as file:
        np.save(file, vectors.table)
    write_json(path.with_suffix(".json"), list(vectors.rows))


def _read_own(path: Path) -> WordVectors:
    try:
        table = np.array(map_array(path))
        words = parse_json(path.with_suffix(".json").read_bytes(), values=len(table) if table.ndim else 0)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} and its .json cannot be read ({error}); copy or make them again") from error
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise DataError(f"{path}: its .json is not a list of words; copy or make it again")
    if table.dtype != np.float32 or table.ndim != 2 or not table.shape[1]:
        raise DataError(
            f"{path}: expected float32 [words, dimension], found {table.dtype} {list(table.shape)}; copy or "
            "make it again"
        )
    if len(words) != len(table):
        raise DataError(f"{path}: has {len(table)} vectors for {len(words)} words; copy or make it again")
    return WordVectors({word: row for row, word in enumerate(words)}, table)


def _read_text(path: str | Path) -> WordVectors:
    with closing(read_lines(path, whole=True)) as lines:  # also after an error
        first = next(lines, "")
        count, dim = None, len(first.split()) - 1
        if _HEADER.fullmatch(first):
            count, dim = (parse_count(field) or 0 for field in first.split())
        if dim < 1 or count == 0:
            raise DataError(
                f"{path}, line 1: expected a word and its numbers, or how many words and dimensions there "
                f"are, found {shown(first)}"
            )
        rest = chain([first], lines) if count is None else lines
        numbered = enumerate(rest, start=1 if count is None else 2)
        return _collect(_text_entries(numbered, dim, path), path, count, dim)


def _text_entries(
    numbered: Iterable[tuple[int, str]], dim: int, path: str | Path
) -> Iterator[tuple[str, npt.NDArray[np.float32]]]:
    for number, line in numbered:
        word, *numbers = line.rstrip().rsplit(" ", dim)  # from the right: some words contain blanks
        try:
            with np.errstate(over="ignore"):  # infinity is refused at the end
                vector = np.array(numbers, np.float32)
        except ValueError:
            vector = np.zeros(0, np.float32)
        if len(vector) != dim:
            raise DataError(
                f"{path}, line {number}: expected a word and {dim} numbers, found {shown(line)}; repair the "
                "line or remove it"
            )
        yield word, vector


def _read_binary(path: Path) -> WordVectors:
    if not path.is_file():
        raise DataError(f"{path} does not exist, expected a file of vectors; check the path")
    with open_plain(path, whole=True) as file:
        header = file.readline(100)
        if header.startswith(_FASTTEXT_MAGIC):
            raise DataError(f"{path} is a fastText model, expected vectors; take its .vec file")
        fields = [parse_count(field) for field in header.split()]
        if len(fields) != 2 or not fields[0] or not fields[1] or fields[1] > _MOST_DIMENSIONS:
            raise DataError(
                f"{path}: expected word2vec's binary form, whose first line is two numbers, found "
                f"{shown(header, 40)}"
            )
        count, dim = fields[0], fields[1]
        return _collect(_binary_entries(file, count, dim, path), path, count, dim)


def _binary_entries(
    file: IO[bytes], count: int, dim: int, path: Path
) -> Iterator[tuple[str, npt.NDArray[np.float32]]]:
    for _ in range(count):
        letters = bytearray()
        while (letter := file.read(1)) not in (b" ", b""):
            letters += letter
        numbers = file.read(4 * dim)
        if len(numbers) < 4 * dim:
            raise DataError(
                f"{path} is truncated at {shown(bytes(letters), 40)}; copy or make the file again"
            )
        yield letters.lstrip(b"\n").decode(errors="replace"), np.frombuffer(numbers, "<f4")


def _collect(
    entries: Iterable[tuple[str, npt.NDArray[np.float32]]], path: str | Path, count: int | None, dim: int
) -> WordVectors:
    """Put the entries into a table that grows with them: a header may promise any number of words."""
    rows: dict[str, int] = {}
    numbers = bytearray()
    found = 0
    for word, vector in entries:
        found += 1
        if word not in rows:
            numbers += vector.tobytes()
            rows[word] = len(rows)
    if count is not None and count not in (found, len(rows)):
        raise DataError(
            f"{path}: its first line promises {count:,} words, it has {found:,}; copy or make the file again"
        )
    table = np.frombuffer(numbers, np.float32).reshape(len(rows), dim)
    if not np.isfinite(table).all():
        raise DataError(f"{path}: has NaN or infinite numbers; copy or make the file again")
    return WordVectors(rows, table)
