"""Parquet and Arrow files: a row a sentence, columns `index`, `text`, `tokens`, `offsets` and the vectors.

The vectors are one column `vectors`, or `layer_0` … `layer_L` where all layers are kept; each holds a list of
fixed-size lists, one a token.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from elmokit.vectors.rows import FloatArray, Layout, Row, batches

BATCH_BYTES = 32 << 20


def write_parquet(path: Path, rows: Iterator[Row], layout: Layout) -> None:
    """Write a Parquet file, a row group for about 32 MB."""
    schema = _schema(layout)
    # A dictionary of floats never pays; trying one costs time and memory on every page.
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for batch in _record_batches(rows, schema):
            writer.write_batch(batch)


def write_arrow(path: Path, rows: Iterator[Row], layout: Layout) -> None:
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
    for batch in batches(rows, BATCH_BYTES):
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
