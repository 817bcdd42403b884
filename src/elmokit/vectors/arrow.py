"""Parquet and Arrow files: a row per sentence with columns `index`, `text`, `tokens`, `offsets` and vectors.

The vectors are in one column `vectors`, or in `layer_0` … `layer_L` if all layers are kept. Each value is a
list of fixed-size lists, one per token.
"""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from elmokit.base import group_until
from elmokit.vectors.rows import FloatArray, Layout, Row, StoredSentence

BATCH_BYTES = 32 << 20


def write_parquet(path: Path, rows: Iterator[Row], layout: Layout, count: int) -> None:
    """Write a Parquet file with row groups of about 32 MB."""
    schema = _schema(layout)
    # A dictionary of floats is useless, and building one costs time and memory on every page.
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for batch in _record_batches(rows, schema):
            writer.write_batch(batch)


def write_arrow(path: Path, rows: Iterator[Row], layout: Layout, count: int) -> None:
    """Write an Arrow IPC file (Feather 2), which readers map into memory."""
    schema = _schema(layout)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for batch in _record_batches(rows, schema):
            writer.write_batch(batch)


def _schema(layout: Layout) -> Any:  # noqa: ANN401  (pyarrow has no types)
    *layers, _, dim = layout.shape
    vector = pa.list_(pa.float32() if layout.dtype == "float32" else pa.float16(), dim)
    names = [f"layer_{layer}" for layer in range(layers[0])] if layers else ["vectors"]
    return pa.schema(
        [
            ("index", pa.int64()),
            ("text", pa.string()),
            ("tokens", pa.list_(pa.string())),
            ("offsets", pa.list_(pa.list_(pa.int32(), 2))),
            *((name, pa.list_(vector)) for name in names),
        ]
    )


def _record_batches(rows: Iterator[Row], schema: Any) -> Iterator[Any]:  # noqa: ANN401
    first = 0
    for batch in group_until(rows, lambda row: row.vectors.nbytes + len(row.text) + 1, BATCH_BYTES):
        starts = np.cumsum([0, *(len(row.tokens) for row in batch)], dtype=np.int32)
        columns = [
            pa.array(range(first, first + len(batch)), pa.int64()),
            pa.array([row.text for row in batch], pa.string()),
            _lists(starts, pa.array(chain.from_iterable(row.tokens for row in batch), pa.string())),
            _lists(
                starts, _vectors(np.array([pair for row in batch for pair in row.offsets], np.int32), dim=2)
            ),
        ]
        for layer in range(len(schema) - len(columns)):
            parts = [row.vectors[layer] if row.vectors.ndim == 3 else row.vectors for row in batch]
            columns.append(_lists(starts, _vectors(np.concatenate(parts), dim=parts[0].shape[-1])))
        yield pa.record_batch(columns, schema=schema)
        first += len(batch)


def _vectors(array: "FloatArray | np.ndarray[Any, Any]", *, dim: int) -> Any:  # noqa: ANN401
    return pa.FixedSizeListArray.from_arrays(pa.array(array.reshape(-1)), dim)


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
        self._columns = [name for name in schema.names if name == "vectors" or name.startswith("layer_")]
        missing = [name for name in ("text", "tokens", "offsets") if name not in schema.names]
        if missing or not self._columns:
            raise ValueError(f"expected text, tokens, offsets and vectors, found columns {schema.names[:9]}")
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
        parts = [_array(self._rows[name][row]) for name in self._columns]  # (T, D) each
        return StoredSentence.of(
            parts[0] if self._columns == ["vectors"] else np.stack(parts),
            self._rows["text"][row].as_py(),
            self._rows["tokens"][row].as_py(),
            [(start, end) for start, end in self._rows["offsets"][row].as_py()],
        )


def _array(vectors: Any) -> FloatArray:  # noqa: ANN401
    """Copy a list of fixed-size lists into an array (T, D)."""
    values: FloatArray = vectors.values.flatten().to_numpy(zero_copy_only=False)
    return np.array(values).reshape(-1, vectors.type.value_type.list_size)
