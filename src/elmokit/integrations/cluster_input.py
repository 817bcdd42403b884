"""Read texts as a cluster embeds them: in shards, with bad rows as they are."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

from elmokit.base import group_until, text_ending
from elmokit.errors import ConfigError, DataError
from elmokit.text import (
    JSON_LINES,
    TextColumn,
    TextSource,
    is_table,
    read_columns,
    read_json_lines,
    read_texts,
)
from elmokit.vectors import texts_digest

_PARQUET = ".parquet"

Record = tuple[object, object]  # an id or None, and what should be a text or a list of tokens


@dataclass(frozen=True)
class InputShard:
    """Consecutive rows of the input, which become one file.

    Attributes:
        number: From 0.
        first: The number of its first row, from 1.
        ids: Of its rows; None without a column of ids.
        values: What should be texts, or lists of tokens.
    """

    number: int
    first: int
    ids: list[object] | None
    values: list[object]

    @property
    def digest(self) -> str:
        """The digest of its content."""
        ids = repeat(None) if self.ids is None else self.ids
        return texts_digest(json.dumps(pair, default=repr) for pair in zip(self.values, ids, strict=False))


def read_shards(records: Iterator[Record], characters: int, *, with_ids: bool) -> Iterator[InputShard]:
    """Group records; a shard ends with the record that brings it to so many characters."""
    first = 1
    for number, group in enumerate(group_until(records, lambda record: _size(record[1]), characters)):
        ids = [one for one, _ in group] if with_ids else None
        yield InputShard(number, first, ids, [value for _, value in group])
        first += len(group)


def read_records(
    source: TextSource, *, column: str, id_column: str | None, tokens: bool, split: str | None
) -> Iterator[Record]:
    """Read id and text of each row of a table (CSV, TSV, JSON lines, Parquet), or the lines of a text.

    Cells of JSON lines and Parquet come as they are, of whatever type; a missing key is None.

    Raises:
        ConfigError: Ids, or split sentences, are asked of what has none.
        DataError: The source cannot be read.
    """
    path = source.path if isinstance(source, TextColumn) else source
    column = source.name if isinstance(source, TextColumn) else column
    if isinstance(path, list | tuple) or not (is_table(path) or text_ending(path) == _PARQUET):
        if id_column is not None:
            raise ConfigError(
                f"id_column={id_column!r} needs a table, and {path!s:.40} is a text; leave it out"
            )
        return ((None, text) for text in read_texts(source, tokens=tokens, split=split))
    if split is not None:
        raise ConfigError(f"split is for texts, and {path} is a table, whose cells are one row each")
    if text_ending(path) == _PARQUET:
        return _parquet_records(Path(path), column, id_column)
    if text_ending(path) in JSON_LINES:
        return _json_records(path, column, id_column)
    if id_column is None:
        return ((None, text) for (text,) in read_columns(path, text=column))
    return ((one, text) for text, one in read_columns(path, text=column, id=id_column))


def arrow_values(column: Any) -> list[object]:  # noqa: ANN401  (pyarrow has no types)
    """Return the values of an Arrow column; bytes that are not UTF-8 become lone surrogates."""
    import pyarrow

    try:
        found: list[object] = column.to_pylist()
    except UnicodeDecodeError:  # Arrow does not look whether its strings are UTF-8
        return [
            None if value is None else value.decode("utf-8", "surrogateescape")
            for value in column.cast(pyarrow.binary()).to_pylist()
        ]
    return found


def _json_records(path: str | Path, column: str, id_column: str | None) -> Iterator[Record]:
    for number, record in read_json_lines(path):
        if id_column is not None and id_column not in record:
            raise DataError(f"{path}, line {number}: has no {id_column!r}; expected the id of the row there")
        yield None if id_column is None else record[id_column], record.get(column)


def _parquet_records(path: Path, column: str, id_column: str | None) -> Iterator[Record]:
    import pyarrow
    from pyarrow import parquet

    names = [column] if id_column is None else [column, id_column]
    try:
        with parquet.ParquetFile(path) as file:
            if missing := [name for name in names if name not in file.schema_arrow.names]:
                raise DataError(
                    f"{path} has the columns {', '.join(file.schema_arrow.names)}, expected {missing[0]!r}; "
                    "name text_column, or id_column"
                )
            for batch in file.iter_batches(batch_size=256, columns=names):
                ids = repeat(None) if id_column is None else batch[id_column].to_pylist()
                yield from zip(ids, arrow_values(batch[column]), strict=False)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read as Parquet: {error}; copy or make the file again") from error


def _size(value: object) -> int:
    if isinstance(value, str):
        return 1 + len(value)
    return 1 + sum(map(len, value)) if isinstance(value, Sequence) and all(map(_is_text, value)) else 1


def _is_text(value: object) -> bool:
    return isinstance(value, str)
