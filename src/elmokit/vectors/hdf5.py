"""HDF5 as AllenNLP wrote it: a dataset "0", "1", … for each sentence, and `sentence_to_index`.

The attributes `tokens` and `offsets` of each dataset hold these as JSON. Vectors of sentences or of uses are
in one dataset, `vectors`, beside `line` and `text` and, for uses, `word`, `start` and `end`. The attribute
`elmokit` of the file holds the settings as JSON.
"""

import json
import os
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import h5py
import numpy as np

from elmokit.base import check_hdf5, check_hdf5_heaps, group_until, open_hdf5, parse_json, read_hdf5
from elmokit.vectors.rows import Layout, Row, StoredSentence, Unit
from elmokit.vectors.sentence_index import SentenceIndex, SentenceIndexWriter

_INDEX = "sentence_to_index"
_SETTINGS = "elmokit"
_FIELDS = ("tokens", "offsets")
_ROWS_AT_ONCE = 1000


def write_hdf5(
    path: Path, rows: Iterator[Row], layout: Layout, count: int, metadata: Mapping[str, Any]
) -> None:
    """Write AllenNLP 0.9's layout, or a table if vectors are those of sentences or uses."""
    with open_hdf5(path, {_SETTINGS: json.dumps(metadata, ensure_ascii=False)}) as add:
        if layout.unit == "token":
            index = SentenceIndexWriter()
            for number, row in enumerate(rows):
                attributes = {"tokens": json.dumps(row.tokens), "offsets": json.dumps(row.offsets)}
                add(str(number), row.vectors, attributes)
                index.add(row.text, number)
            add(_INDEX, [index.finish()], dtype=h5py.string_dtype())
        else:
            _write_table(add, rows, layout, count)


def _write_table(add: Callable[..., Any], rows: Iterator[Row], layout: Layout, count: int) -> None:
    """Write a dataset for each column."""
    columns: dict[str, Any] = {"vectors": None, "line": np.int64, "text": h5py.string_dtype()}
    if layout.uses:
        columns |= {"word": h5py.string_dtype(), "start": np.int32, "end": np.int32}
    else:
        columns |= {"tokens": h5py.string_dtype(), "offsets": h5py.string_dtype()}
    shape = (count, *layout.file_shape)
    datasets = {
        name: add(name, None, shape=(count,), dtype=dtype)
        if dtype
        else add(name, None, shape=shape, dtype=layout.dtype)
        for name, dtype in columns.items()
    }
    first = 0
    for batch in group_until(rows, lambda _: 1, _ROWS_AT_ONCE):
        values: dict[str, Any] = {
            "vectors": np.stack([row.vectors for row in batch]),
            "line": [row.line for row in batch],
            "text": [_plain(row.text) for row in batch],
        }
        if layout.uses:
            values |= {"word": [_plain(row.tokens[0]) for row in batch]}
            values |= {
                "start": [row.offsets[0][0] for row in batch],
                "end": [row.offsets[0][1] for row in batch],
            }
        else:
            values |= {"tokens": [json.dumps(row.tokens) for row in batch]}
            values |= {"offsets": [json.dumps(row.offsets) for row in batch]}
        for name, dataset in datasets.items():
            dataset[first : first + len(batch)] = values[name]
        first += len(batch)


def _plain(text: str) -> bytes:
    """Encode a text; HDF5 cannot hold NUL, nor UTF-8 a lone surrogate, which is written as its escape."""
    return text.replace("\0", "\ufffd").encode(errors="backslashreplace")


def _text(holder: Any, name: str) -> str | None:  # noqa: ANN401  (h5py has no types)
    """Return an attribute that is one string; h5py crashes when it reads some that are not."""
    if name not in holder.attrs:
        return None
    found = holder.attrs.get_id(name)
    if h5py.check_string_dtype(found.dtype) is None or found.shape != ():
        raise ValueError(f"the attribute {name} is not one string")
    return str(holder.attrs[name])


class Hdf5Vectors:
    """An open file from `write_hdf5`, AllenNLP or bilm-tf; sentences are read on demand."""

    def __init__(self, path: Path) -> None:
        check_hdf5_heaps(path)
        self._path = path
        self._file = h5py.File(path, "r")
        self.close = self._file.close
        self.metadata: dict[str, Any] = parse_json(_text(self._file, _SETTINGS) or "{}")
        self._is_table = "vectors" in self._file
        if self._is_table:
            self._check_table()
            self.num_sentences = len(self._file["vectors"])
            return
        has_index = self._file.get(_INDEX, getlink=True, default=None) is not None
        self.num_sentences = len(self._file) - has_index
        if self.num_sentences and str(self.num_sentences - 1) not in self._file:
            found = ", ".join(sorted(self._file)[:5])
            raise ValueError(f"expected datasets '0', '1', …, found {found}")
        # bilm-tf writes no index.
        content = self._read_index() if has_index else b""
        self._index = SentenceIndex(content, self.num_sentences)

    def sentence(self, number: int) -> StoredSentence:
        """Read one sentence."""
        return self._table_row(number) if self._is_table else self._own_dataset(number)

    def _own_dataset(self, number: int) -> StoredSentence:
        dataset = self._dataset(str(number))
        fields: dict[str, Any] = {"text": self._index.text(number), "line": number + 1}
        texts = {name: _text(dataset, name) for name in _FIELDS}
        fields |= {name: parse_json(text) for name, text in texts.items() if text is not None}
        return StoredSentence.of(read_hdf5(dataset), fields)

    def _check_table(self) -> None:
        """Raise a ValueError if a column is not stored in this file as `write_hdf5` stores it."""
        for name in self._file:
            column = self._dataset(name)
            if name == "vectors":
                check_hdf5(column)
            if column.external or column.is_virtual or column.chunks:
                raise ValueError(f"{name} is not stored as one block")
            if column.dtype.kind not in "fi" and h5py.check_string_dtype(column.dtype) is None:
                raise ValueError(f"{name} holds neither numbers nor text")

    def _table_row(self, number: int) -> StoredSentence:
        array = self._file["vectors"][number]
        fields: dict[str, Any] = {"line": int(self._file["line"][number])}
        fields["text"] = self._string("text", number).decode()
        if "word" in self._file:
            fields["tokens"] = [self._string("word", number).decode()]
            fields["offsets"] = [(int(self._file["start"][number]), int(self._file["end"][number]))]
        else:
            fields |= {name: parse_json(self._string(name, number)) for name in _FIELDS}
        unit: Unit = "use" if "word" in self._file else "sentence"
        return StoredSentence.of(array, fields, unit=unit, several=array.ndim == 2)

    def _dataset(self, name: str) -> Any:  # noqa: ANN401  (h5py has no types)
        """Return a dataset of this file; links, which may lead to other files, are not followed."""
        if not isinstance(self._file.get(name, getlink=True), h5py.HardLink):
            raise ValueError(f"{name} is a link")
        return self._file[name]

    def _read_index(self) -> bytes:
        if self._dataset(_INDEX).shape != (1,):
            raise ValueError(f"{_INDEX} is not one string")
        return self._string(_INDEX, 0)

    def _string(self, name: str, number: int) -> bytes:
        """Return a string of a dataset without HDF5, which would take as much memory as its length claims."""
        column = self._dataset(name)
        kind, place = h5py.check_string_dtype(column.dtype), column.id.get_offset()
        if kind is None or kind.length is not None or place is None:
            raise ValueError(f"{name} does not hold strings")
        with self._path.open("rb") as file:
            return _heap_object(file, place + _REFERENCE.size * number)


_REFERENCE, _HEAP, _OBJECT = (struct.Struct(layout) for layout in ("<IQI", "<4s4xQ", "<H6xQ"))


def _heap_object(file: BinaryIO, place: int) -> bytes:
    """Return what the reference at `place` refers to: an object of a global heap (HDF5 format, III.E)."""
    total = file.seek(0, os.SEEK_END)
    file.seek(min(place, total))
    length, heap, number = _REFERENCE.unpack(file.read(_REFERENCE.size))
    if not length:
        return b""
    file.seek(min(heap, total))
    magic, size = _HEAP.unpack(file.read(_HEAP.size))
    at, end = heap + _HEAP.size, min(heap + size, total)
    while magic == b"GCOL" and at + _OBJECT.size <= end:
        file.seek(at)
        found, stored = _OBJECT.unpack(file.read(_OBJECT.size))
        if found == number and length <= stored <= end - at - _OBJECT.size:
            return file.read(length)
        at += _OBJECT.size + stored + -stored % 8
    raise ValueError("a text is not where it should be")
