"""Parquet and Arrow files: a row for each sentence, or for each use of a word.

line      number of the sentence in the text, from 1
id        its id in the table that it is from                   (only if ids were wanted)
text      the sentence
tokens    its tokens                                            (not for uses)
offsets   start and end of each token in `text`                 (not for uses)
word, start, end    the word as it is spelt there, and its place in `text`       (uses only)
vectors   a list of fixed-size lists, one per token; `vector`, a fixed-size list, for sentences and uses;
          `layer_0`, `layer_1`, … in its place if there are several layers
error     why a row has no tokens and no vectors; null in the other rows      (only where some may fail)

The metadata of the schema has the settings as JSON under the key "elmokit".
"""

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from elmokit.base import group_until, parse_json
from elmokit.vectors.rows import FloatArray, Layout, Row, StoredSentence, Unit, file_rows

BATCH_BYTES = 32 << 20
_KEY = b"elmokit"


def write_parquet(
    path: Path, rows: Iterator[Row], layout: Layout, count: int, metadata: Mapping[str, Any]
) -> None:
    """Write a Parquet file with row groups of about 32 MB."""
    schema = _schema(layout, metadata)
    # A dictionary of floats is useless, and building one costs time and memory on every page.
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for batch in _record_batches(rows, layout, schema):
            writer.write_batch(batch)


def write_arrow(
    path: Path, rows: Iterator[Row], layout: Layout, count: int, metadata: Mapping[str, Any]
) -> None:
    """Write an Arrow IPC file (Feather 2), which readers map into memory."""
    schema = _schema(layout, metadata)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for batch in _record_batches(rows, layout, schema):
            writer.write_batch(batch)


def stream_bytes(rows: Iterator[Row], layout: Layout, metadata: Mapping[str, Any]) -> bytes:
    """Return an Arrow IPC stream, which can be sent and read in one go."""
    schema, sink = _schema(layout, metadata), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in _record_batches(rows, layout, schema):
            writer.write_batch(batch)
    whole: bytes = sink.getvalue().to_pybytes()
    return whole


def make_table(rows: Sequence[Row | None], layout: Layout) -> Any:  # noqa: ANN401  (pyarrow has no types)
    """Return the columns that depend on the model, from `tokens` on; where a row is None, all are null."""
    schema = _schema(layout, {})
    good = file_rows([row for row in rows if row is not None], layout)
    table = pa.Table.from_batches(_record_batches(good, layout, schema), schema)
    table = table.drop_columns(["line", "text"]).replace_schema_metadata(None)
    if len(table) == len(rows):
        return table
    places = accumulate(row is not None for row in rows)
    return table.take(
        pa.array(
            [None if row is None else place - 1 for row, place in zip(rows, places, strict=True)], pa.int64()
        )
    )


def write_table(path: Path, table: Any, metadata: Mapping[str, Any]) -> None:  # noqa: ANN401
    """Write a table with the columns of a Parquet file of vectors, in row groups of about 32 MB."""
    groups = max(1, round(table.nbytes / BATCH_BYTES))
    table = table.replace_schema_metadata({_KEY: json.dumps(metadata, ensure_ascii=False).encode()})
    with pq.ParquetWriter(path, table.schema, use_dictionary=False) as writer:
        writer.write_table(table, row_group_size=max(1, -(-len(table) // groups)))


def table_metadata(path: Path) -> dict[str, Any]:
    """Return what a Parquet file of vectors says of itself; nothing of its rows is read."""
    found: dict[str, Any] = parse_json((pq.read_schema(path).metadata or {}).get(_KEY, b"{}"))
    return found


def _schema(layout: Layout, metadata: Mapping[str, Any]) -> Any:  # noqa: ANN401  (pyarrow has no types)
    vector = pa.list_(pa.float32() if layout.dtype == "float32" else pa.float16(), layout.shape[-1])
    of_sentences = [("tokens", pa.list_(pa.string())), ("offsets", pa.list_(pa.list_(pa.int32(), 2)))]
    of_uses = [("word", pa.string()), ("start", pa.int32()), ("end", pa.int32())]
    return pa.schema(
        [
            ("line", pa.int64()),
            ("text", pa.string()),
            *(of_uses if layout.uses else of_sentences),
            *((name, pa.list_(vector) if layout.unit == "token" else vector) for name in layout.names()),
        ],
        metadata={_KEY: json.dumps(metadata, ensure_ascii=False).encode()},
    )


def _record_batches(rows: Iterator[Row], layout: Layout, schema: Any) -> Iterator[Any]:  # noqa: ANN401
    for batch in group_until(rows, lambda row: row.vectors.nbytes + len(row.text) + 1, BATCH_BYTES):
        starts = np.cumsum([0, *(len(row.tokens) for row in batch)], dtype=np.int32)
        tokens = pa.array(chain.from_iterable(row.tokens for row in batch), pa.string())
        offsets = np.array([pair for row in batch for pair in row.offsets], np.int32).reshape(-1, 2)
        columns = [pa.array([row.line for row in batch]), pa.array([row.text for row in batch], pa.string())]
        if layout.uses:  # each row has one token: the word
            columns += [tokens, pa.array(offsets[:, 0]), pa.array(offsets[:, 1])]
        else:
            columns += [_lists(starts, tokens), _lists(starts, _vectors(offsets))]
        for layer in range(len(layout.names())):
            parts = [row.vectors[layer] if layout.several else row.vectors for row in batch]
            if layout.unit == "token":
                columns.append(_lists(starts, _vectors(np.concatenate(parts))))
            else:
                columns.append(_vectors(np.stack(parts)))
        yield pa.record_batch(columns, schema=schema)


def _vectors(array: "FloatArray | np.ndarray[Any, Any]") -> Any:  # noqa: ANN401
    return pa.FixedSizeListArray.from_arrays(pa.array(array.reshape(-1)), array.shape[-1])


def _lists(starts: "np.ndarray[Any, Any]", values: Any) -> Any:  # noqa: ANN401
    return pa.ListArray.from_arrays(pa.array(starts), values)


class TableVectors:
    """An open Parquet or Arrow file; one row group or record batch is in memory at a time.

    Args:
        path: The file.
        parquet: Whether it is Parquet.
    """

    def __init__(self, path: Path, *, parquet: bool) -> None:
        if parquet:
            file = pq.ParquetFile(path, memory_map=True)
            schema, groups = file.schema_arrow, range(file.num_row_groups)
            sizes = [file.metadata.row_group(group).num_rows for group in groups]
            self._read, self.close = file.read_row_group, file.close
        else:
            source = pa.memory_map(str(path))
            file = pa.ipc.open_file(source)
            schema, groups = file.schema, range(file.num_record_batches)
            sizes = [file.get_batch(group).num_rows for group in groups]
            self._read, self.close = file.get_batch, source.close
        self._columns = [
            name for name in schema.names if name in ("vector", "vectors") or name.startswith("layer_")
        ]
        if "text" not in schema.names or not self._columns:
            raise ValueError(f"expected text and vectors, found columns {schema.names[:9]}")
        self.metadata: dict[str, Any] = parse_json((schema.metadata or {}).get(_KEY, b"{}"))
        known = ("line", "text", "tokens", "offsets", "id", "error")
        self._fields = [name for name in known if name in schema.names]
        self._uses = "word" in schema.names
        is_vector = pa.types.is_fixed_size_list(schema.field(self._columns[0]).type)
        self._unit: Unit = "use" if self._uses else "sentence" if is_vector else "token"
        self._starts = list(accumulate(sizes, initial=0))
        self.num_sentences = self._starts.pop()
        self._group: int | None = None
        self._rows: Any = None

    def sentence(self, number: int) -> StoredSentence:
        """Read one sentence, and its row group or record batch if that is not the one in memory."""
        group = bisect_right(self._starts, number) - 1
        if group != self._group:
            self._rows = None  # free the memory of the last one first
            self._rows = self._read(group)
            self._rows.validate(full=True)  # offsets of a damaged file would crash the process
            self._group = group
        row = number - self._starts[group]

        def cell(name: str) -> Any:  # noqa: ANN401
            return self._rows[name][row].as_py()

        fields = {name: cell(name) for name in self._fields}
        if self._uses:
            fields |= {"tokens": [cell("word")], "offsets": [(cell("start"), cell("end"))]}
        parts = [_array(self._rows[name][row]) for name in self._columns]  # (T, D) or (D,) each
        several = self._columns[0].startswith("layer_")
        there = [part for part in parts if part is not None]
        array = np.stack(there) if several and there else parts[0]
        return StoredSentence.of(array, fields, unit=self._unit, several=several)


def _array(vectors: Any) -> FloatArray | None:  # noqa: ANN401
    """Copy a list of fixed-size lists into an array (T, D), one such list into (D,); null is None."""
    if not vectors.is_valid:
        return None
    of_tokens = not pa.types.is_fixed_size_list(vectors.type)
    values = vectors.values.flatten() if of_tokens else vectors.values
    array: FloatArray = np.array(values.to_numpy(zero_copy_only=False))
    return array.reshape(-1, vectors.type.value_type.list_size) if of_tokens else array
