"""Read files as documents, and documents as blocks of text.

Where a document starts:

* in a text file, at the beginning of the file and after a blank line, whether lines are sentences or running
  text; a text that has no blank line for 100,000 characters starts another document at the next line;
* in JSON lines and Parquet, at each record, which may have blank lines inside.
"""

import glob
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from elmokit.base import TEXT, group_until, has_packed_ending, other_kind, text_ending
from elmokit.corpus.corpus_settings import PrepareSettings
from elmokit.errors import DataError, MissingExtra
from elmokit.text import JSON_LINES, read_json_lines, read_lines

BLOCK_CHARACTERS = 4_000_000  # about 700,000 words: seconds of work, tens of megabytes
# Limits memory for a text without blank lines, and lets part of it be held out.
DOCUMENT_CHARACTERS = 100_000
_DIGESTED_BYTES = 1 << 16


def find_files(sources: Iterable[str | Path]) -> list[Path]:
    """Return the files of paths and globs; the matches of a glob are sorted, and no file occurs twice.

    Raises:
        DataError: A glob matches nothing, or a path does not exist or is a folder.
    """
    files: dict[Path, None] = {}
    for source in sources:
        path = Path(source)
        # The name of an existing file may have brackets, and is not a glob then.
        # Path.glob refuses absolute patterns.
        found = [path] if path.exists() else sorted(map(Path, glob.iglob(str(source), recursive=True)))  # noqa: PTH207
        wrong = other_kind(path, TEXT)
        if wrong is not None and path.suffix != ".parquet":
            raise DataError(f"{wrong}; pass text files, or a prepared corpus")
        if path.is_dir():
            raise DataError(f"{source} is a folder; name the files in it, e.g. '{path / '*.txt'}'")
        found = [file for file in found if file.is_file()]
        if not found:
            raise DataError(f"{source}: no file has this name or matches it; check the path")
        files |= dict.fromkeys(found)
    return list(files)


def describe_file(path: Path) -> dict[str, Any]:
    """Return the path and size of a file and a digest of its first and last 64 KB.

    The whole file may be too large to read, and its times change when it is copied.

    Raises:
        DataError: The file cannot be read.
    """
    try:
        with path.open("rb") as file:
            digest = hashlib.sha256(file.read(_DIGESTED_BYTES))
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _DIGESTED_BYTES))
            digest.update(file.read(_DIGESTED_BYTES))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}; check its permissions") from error
    return {"path": str(path), "bytes": size, "digest": digest.hexdigest()[:16]}


def read_documents(path: Path, settings: PrepareSettings) -> Iterator[str]:
    """Read the documents of a file.

    Raises:
        DataError: The file does not have the format that its name says, or a record has no text.
        MissingExtra: The file needs a library that is not installed.
    """
    ending = text_ending(path)
    if ending in (".csv", ".tsv"):
        raise DataError(
            f"{path} is a table, expected text; save its texts as a text file, JSON lines or Parquet"
        )
    if ending == ".parquet":
        return _parquet_documents(path, settings.parquet_column)
    if ending in JSON_LINES:
        return _json_documents(path, settings.json_field)
    return _text_documents(path)


def is_plain_text(path: Path) -> bool:
    """Return whether the size of a file is the size of its text."""
    return not has_packed_ending(path) and text_ending(path) not in (*JSON_LINES, ".parquet")


def blocks(files: Sequence[Path], settings: PrepareSettings) -> Iterator[list[str]]:
    """Group the documents of all files into blocks of about the same size."""
    documents = chain.from_iterable(read_documents(file, settings) for file in files)
    return group_until(documents, len, BLOCK_CHARACTERS)


def _text_documents(path: Path) -> Iterator[str]:
    for is_text, lines in groupby(read_lines(path), key=lambda line: bool(line.strip())):
        if is_text:
            yield from map("\n".join, group_until(lines, len, DOCUMENT_CHARACTERS))


def _json_documents(path: Path, field: str) -> Iterator[str]:
    for number, record in read_json_lines(path):
        if field not in record:
            raise DataError(
                f"{path}, line {number}: found the fields {', '.join(record)}, expected the field {field!r}; "
                "name the field that holds the text with json_field"
            )
        yield _text_of(record[field], f"{path}, line {number}, field {field!r}")


def _parquet_documents(path: Path, column: str) -> Iterator[str]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtra("pyarrow", "arrow", "reading Parquet files") from error
    try:
        with parquet.ParquetFile(path) as file:
            if column not in file.schema_arrow.names:
                raise DataError(
                    f"{path} has the columns {', '.join(file.schema_arrow.names)}, expected {column!r}; "
                    "name the column that holds the text with parquet_column"
                )
            for batch in file.iter_batches(batch_size=256, columns=[column]):
                for value in batch.column(0).to_pylist():
                    yield _text_of(value, f"{path}, column {column!r}")
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as Parquet: {error}; copy or make the file again") from error


def _text_of(value: object, where: str) -> str:
    """Return the text of a record; null is read as an empty text, which is counted later."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise DataError(f"{where} holds {str(value)[:40]!r}, expected text; name another field or column")
    return value
