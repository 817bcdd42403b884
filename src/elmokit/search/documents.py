"""Documents to be searched, and the files that they come from."""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from elmokit.base import text_ending
from elmokit.errors import DataError
from elmokit.text import JSON_LINES, csv_rows, read_json_lines, read_lines, shown_cells, tsv_rows

logger = logging.getLogger(__name__)

Value: TypeAlias = str | int | float | bool

_TABLES = (".csv", ".tsv")
_IDS = ("id", "_id")


@dataclass(frozen=True, kw_only=True)
class Document:
    """A text that can be found.

    Attributes:
        id: Its name, unique in an index; adding another document of this name replaces it.
        text: The text. A title may be its first paragraph.
        metadata: What results can be filtered by: texts, numbers, true or false.
    """

    id: str
    text: str
    metadata: dict[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id or "\0" in self.id:
            raise DataError(f"a document needs a name, found id={self.id!r:.60}")
        if not isinstance(self.text, str):
            raise DataError(f"document {self.id!r:.60}: expected text, found {type(self.text).__name__}")
        for name, value in self.metadata.items():
            if not isinstance(name, str) or not isinstance(value, str | int | float | bool):
                raise DataError(
                    f"document {self.id!r:.60}: metadata are texts, numbers, true or false by name, found "
                    f"{name!r:.40}: {value!r:.40}"
                )


def as_documents(documents: Iterable[str | Document]) -> Iterator[Document]:
    """Give texts their position as name, from 0."""
    if isinstance(documents, str | bytes) or not isinstance(documents, Iterable):
        raise DataError(f"expected a list of texts or Documents, found {type(documents).__name__}")
    for number, one in enumerate(documents):
        if isinstance(one, Document):
            yield one
        elif isinstance(one, str):
            yield Document(id=str(number), text=one)
        else:
            raise DataError(f"expected a text or a Document, found {type(one).__name__} {one!r:.60}")


def read_documents(sources: Iterable[str | Path], *, text_column: str = "text") -> Iterator[Document]:
    """Read the documents of files and folders.

    * .jsonl, .ndjson: an object a line with a `text` and perhaps an `id` or `_id` and a `title`; its other
      fields that are texts or numbers are metadata;
    * .csv, .tsv: the same by columns, which the first row names, in upper or lower case;
    * other files: a document a line, named FILE:LINE;
    * a folder: each file in it is one document, named by its path in the folder.

    Files may be compressed. A title becomes the first paragraph of the text.

    Args:
        sources: The files and folders.
        text_column: The column, or the field of JSON lines, that holds the text.

    Raises:
        DataError: A file cannot be read, or a record has no text.
    """
    for source in map(Path, sources):
        document = None
        for document in _documents_of(source, text_column):
            yield document
        if document is None:
            logger.warning("%s holds no documents", source)


def _documents_of(source: Path, text_column: str) -> Iterator[Document]:
    ending = text_ending(source)
    if source.is_dir():
        yield from _folder(source)
    elif ending in JSON_LINES or ending in _TABLES:
        records = read_json_lines(source) if ending in JSON_LINES else _table_records(source)
        for number, record in records:
            yield _document(record, text_column, f"{source.name}:{number}", f"{source}, record {number}")
    else:
        for number, line in enumerate(read_lines(source), start=1):
            if line.strip():
                yield Document(id=f"{source.name}:{number}", text=line)


def _folder(folder: Path) -> Iterator[Document]:
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.is_file() and not hidden:
            text = "\n".join(read_lines(path, whole=True))
            yield Document(id=path.relative_to(folder).as_posix(), text=text)


def _table_records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    rows = tsv_rows(path) if text_ending(path) == ".tsv" else csv_rows(path)
    _, names = next(rows, ("", []))
    for number, (where, row) in enumerate(rows, start=1):
        if len(row) != len(names):
            raise DataError(
                f"{where}: expected {len(names)} columns, found {len(row)}, {shown_cells(row)}; complete the "
                "row, or put quotes around cells that hold the delimiter"
            )
        yield number, dict(zip(names, row, strict=True))


def _document(record: dict[str, Any], text_column: str, name: str, where: str) -> Document:
    names = {key.strip().lower(): key for key in record}
    text = record.pop(names.get(text_column.strip().lower(), ""), None)
    if not isinstance(text, str):
        raise DataError(
            f"{where}: expected a text in {text_column!r}, found {shown_cells(list(names.values()))}; pass "
            "text_column=NAME"
        )
    title = record.get(names.get("title", ""))
    if isinstance(title, str) and title:
        text = f"{title}\n\n{text}"
    ids = [record.pop(names[key]) for key in _IDS if names.get(key) in record]
    metadata = {key: value for key, value in record.items() if isinstance(value, str | int | float)}
    return Document(id=str(ids[0]) if ids and ids[0] != "" else name, text=text, metadata=metadata)
