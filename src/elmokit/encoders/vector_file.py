r"""Files of word vectors: text (GloVe; word2vec and fastText with a header), word2vec's binary, and our own.

text      [words dimension \n]  word number number … \n
binary    words dimension \n  then for each word: its bytes, a blank, float32 numbers, and perhaps \n
own       the numbers as .npy, the words as a list in a .json beside it, because words may contain blanks
"""

import gzip
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, cast

import numpy as np
import numpy.typing as npt

from elmokit.base import draft_file, write_json
from elmokit.errors import DataError
from elmokit.text import read_lines

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
        words = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        table = np.load(path)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} and its .json cannot be read ({error}); copy or make them again") from error
    if len(words) != len(table):
        raise DataError(f"{path}: has {len(table)} vectors for {len(words)} words; copy or make it again")
    return WordVectors({word: row for row, word in enumerate(words)}, table)


def _read_text(path: str | Path) -> WordVectors:
    lines = read_lines(path)
    first = next(lines, "")
    fields = first.split()
    has_header = len(fields) == 2 and all(field.isdigit() for field in fields)
    dim = int(fields[1]) if has_header else len(fields) - 1
    if dim < 1:
        raise DataError(f"{path}, line 1: expected a word and its numbers, found {first!r:.60}")
    rows: dict[str, int] = {}
    vectors = []
    numbered = enumerate(lines if has_header else chain([first], lines), start=2 if has_header else 1)
    for number, line in numbered:
        word, *numbers = line.rstrip().rsplit(" ", dim)  # from the right: some words contain blanks
        if word not in rows:
            vectors.append(_vector(numbers, dim, f"{path}, line {number}", line))
            rows[word] = len(rows)
    return WordVectors(rows, np.stack(vectors) if vectors else np.zeros((0, dim), np.float32))


def _vector(numbers: list[str], dim: int, where: str, line: str) -> npt.NDArray[np.float32]:
    try:
        vector = np.array(numbers, np.float32)
    except ValueError:
        vector = np.zeros(0, np.float32)
    if len(vector) != dim:
        raise DataError(
            f"{where}: expected a word and {dim} numbers, found {line!r:.60}; repair the line or remove it"
        )
    return vector


def _read_binary(path: Path) -> WordVectors:
    if not path.is_file():
        raise DataError(f"{path} does not exist, expected a file of vectors; check the path")
    with path.open("rb") as raw:
        file: IO[bytes] = cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if path.suffix == ".gz" else raw
        header = file.readline(100)
        if header.startswith(_FASTTEXT_MAGIC):
            raise DataError(f"{path} is a fastText model, expected vectors; take its .vec file")
        try:
            count, dim = map(int, header.split())
        except ValueError as error:
            raise DataError(
                f"{path}: expected word2vec's binary form, whose first line is two numbers, found "
                f"{header!r:.40}"
            ) from error
        rows: dict[str, int] = {}
        table = np.empty((count, dim), np.float32)
        for word, vector in islice(_binary_entries(file, dim, path), count):
            if word not in rows:
                table[len(rows)] = vector
                rows[word] = len(rows)
    return WordVectors(rows, table[: len(rows)])


def _binary_entries(file: IO[bytes], dim: int, path: Path) -> Iterator[tuple[str, npt.NDArray[np.float32]]]:
    while True:
        letters = bytearray()
        while (letter := file.read(1)) not in (b" ", b""):
            letters += letter
        numbers = file.read(4 * dim)
        if len(numbers) < 4 * dim:
            raise DataError(f"{path} is truncated at {bytes(letters)!r:.40}; copy or make the file again")
        yield letters.lstrip(b"\n").decode(errors="replace"), np.frombuffer(numbers, "<f4")
