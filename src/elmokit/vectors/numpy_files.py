"""NumPy's files.

npz   for token vectors the keys of HDF5: "0", "1", … and `sentence_to_index`; else one array `vectors`.
      `sentences.jsonl` has line, text, tokens and offsets of each row, `metadata.json` the settings;
      `np.load` returns both as bytes
npy   one array of sentence vectors, or of the uses of a word, and nothing else
"""

import io
import json
import math
import zipfile
from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from elmokit.base import map_array, parse_json
from elmokit.vectors.rows import Layout, Row, StoredSentence
from elmokit.vectors.sentence_index import SentenceIndex, SentenceIndexWriter

_SENTENCES, _METADATA, _TABLE = "sentences.jsonl", "metadata.json", "vectors.npy"


def write_npz(
    path: Path, rows: Iterator[Row], layout: Layout, count: int, metadata: Mapping[str, Any]
) -> None:
    """Write an npz; none of its entries needs pickle."""
    with zipfile.ZipFile(path, "w") as archive:

        def add(name: str, write: Callable[[IO[bytes]], Any]) -> None:
            with archive.open(zipfile.ZipInfo(name), "w", force_zip64=True) as entry:
                write(entry)

        known = io.BytesIO()  # written at the end: a zip takes one entry at a time
        if layout.unit == "token":
            index = SentenceIndexWriter()
            for number, row in enumerate(rows):
                add(f"{number}.npy", partial(_write_array, row.vectors))
                index.add(row.text, number)
                known.write(_json_line(row))
            add("sentence_to_index.npy", partial(_write_array, np.array([index.finish()])))
        else:
            noted = _noted(rows, lambda row: known.write(_json_line(row)))
            add(_TABLE, lambda entry: _write_matrix(entry, noted, layout, count))
        add(_SENTENCES, lambda entry: entry.write(known.getbuffer()))
        add(_METADATA, lambda entry: entry.write(json.dumps(metadata, ensure_ascii=False).encode()))


def write_npy(
    path: Path, rows: Iterator[Row], layout: Layout, count: int, metadata: Mapping[str, Any]
) -> None:
    """Write one array (count, D), or (count, n, D) for several layers; there is no place for the metadata."""
    with path.open("wb") as file:
        _write_matrix(file, rows, layout, count)


def _write_array(values: npt.NDArray[Any], entry: IO[bytes]) -> None:
    np.lib.format.write_array(entry, values, allow_pickle=False)


def _write_matrix(file: IO[bytes], rows: Iterator[Row], layout: Layout, count: int) -> None:
    shape = (count, *layout.file_shape)
    header = {"descr": np.dtype(layout.dtype).str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    for row in rows:
        file.write(row.vectors.tobytes())


def _noted(rows: Iterator[Row], note: Callable[[Row], Any]) -> Iterator[Row]:
    for row in rows:
        note(row)
        yield row


def _json_line(row: Row) -> bytes:
    fields = {"line": row.line, "text": row.text, "tokens": row.tokens, "offsets": row.offsets}
    return json.dumps(fields).encode() + b"\n"


class NpzVectors:
    """An open file from `write_npz`; sentences are read on demand."""

    def __init__(self, path: Path) -> None:
        with ExitStack() as stack:
            self._archive = stack.enter_context(zipfile.ZipFile(path))
            self._open(stack)
            self.close = stack.pop_all().close

    def _open(self, stack: ExitStack) -> None:
        """Read what the archive holds besides vectors; the stack closes what stays open."""
        names = set(self._archive.namelist())
        self.metadata: dict[str, Any] = parse_json(self._content(_METADATA)) if _METADATA in names else {}
        self._known = self._content(_SENTENCES) if _SENTENCES in names else b""
        self._starts = _line_starts(self._known)
        self._matrix = None
        if _TABLE in names:
            entry = stack.enter_context(self._entry(_TABLE))
            self._matrix = _Matrix(entry, self._archive.getinfo(_TABLE).file_size)
        if self._matrix:
            self.num_sentences = self._matrix.shape[0]
        else:
            self.num_sentences = sum(name.removesuffix(".npy").isdigit() for name in names)
            # Files of earlier versions have the text here only.
            index = bytes(self._read("sentence_to_index")[0])
            self._index = SentenceIndex(index, self.num_sentences)

    def sentence(self, number: int) -> StoredSentence:
        """Read one sentence."""
        if self._starts:
            fields = parse_json(self._known[self._starts[number] : self._starts[number + 1]])
        else:
            fields = {"text": self._index.text(number), "line": number + 1}
        if self._matrix is None:
            return StoredSentence.of(self._read(str(number)), fields)
        values = self._matrix.row(number)
        unit = self.metadata.get("unit", "sentence")
        return StoredSentence.of(values, fields, unit=unit, several=values.ndim == 2)

    def _read(self, key: str) -> npt.NDArray[Any]:
        with self._entry(f"{key}.npy") as entry:
            _checked_header(entry, self._archive.getinfo(f"{key}.npy").file_size)
            entry.seek(0)
            values: npt.NDArray[Any] = np.lib.format.read_array(entry, allow_pickle=False)
            return values

    def _content(self, name: str) -> bytes:
        with self._entry(name) as entry:
            return entry.read()

    def _entry(self, name: str) -> IO[bytes]:
        """Open an entry, which cannot be larger than the file."""
        info = self._archive.getinfo(name)
        if info.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"{name} is compressed, which embed_file never does")
        return self._archive.open(info)


def _checked_header(entry: IO[bytes], size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the header of an array; raise a ValueError if it does not fit an entry of that size."""
    if np.lib.format.read_magic(entry) != (1, 0):
        raise ValueError("an array is not of version 1.0 of NumPy's format")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(entry)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != size - entry.tell():
        raise ValueError(f"{getattr(entry, 'name', 'an array')} has another size than its header says")
    return shape, fortran, dtype


class _Matrix:
    """The rows of an npy that is an entry of a zip, read one at a time."""

    def __init__(self, entry: IO[bytes], size: int) -> None:
        self.shape, fortran, self._dtype = _checked_header(entry, size)
        if fortran or self._dtype.kind != "f" or len(self.shape) not in (2, 3):
            raise ValueError(f"expected vectors, found {self._dtype} of shape {list(self.shape)}")
        self._entry, self._begin = entry, entry.tell()
        self._row_bytes = self._dtype.itemsize * math.prod(self.shape[1:])

    def row(self, number: int) -> npt.NDArray[Any]:
        """Read one row."""
        self._entry.seek(self._begin + number * self._row_bytes)
        content = self._entry.read(self._row_bytes)
        return np.frombuffer(bytearray(content), self._dtype).reshape(self.shape[1:])


def _line_starts(content: bytes) -> "array[int]":
    """Return where each line starts, and the end; nothing if there are no lines."""
    starts, position = array("q"), 0
    while 0 <= position < len(content):
        starts.append(position)
        position = content.find(b"\n", position) + 1 or len(content)
    if starts:
        starts.append(len(content))
    return starts


class NpyVectors:
    """An open file from `write_npy`, mapped into memory."""

    metadata: Mapping[str, Any] = {}

    def __init__(self, path: Path) -> None:
        self._array = map_array(path)  # (n, D) or (n, layers, D)
        if self._array.ndim not in (2, 3) or not self._array.shape[-1]:
            raise ValueError(f"expected an array of shape [sentences, dim], found {list(self._array.shape)}")
        self.num_sentences = len(self._array)

    def sentence(self, number: int) -> StoredSentence:
        """Read one sentence."""
        values = np.array(self._array[number])
        return StoredSentence.of(values, {}, unit="sentence", several=values.ndim == 2)

    def close(self) -> None:
        """Release the file."""
        del self._array
