"""Documents to be searched, and the files that they come from."""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from elmokit.base import text_ending
from elmokit.errors import DataError
from elmokit.text import JSON_LINES, read_json_lines, read_lines

Value: TypeAlias = str | int | float | bool

_TABLES = (".csv", ".tsv")
_IDS = ("id", "_id")
_LONGEST_FIELD = 1 << 24  # characters of a field of a table


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
    for number, one in enumerate(documents):
        if isinstance(one, Document):
            yield one
        elif isinstance(one, str):
            yield Document(id=str(number), text=one)
        else:
            raise DataError(f"expected a text or a Document, found {type(one).__name__} {one!r:.60}")


def read_documents(sources: Iterable[str | Path], *, text_field: str = "text") -> Iterator[Document]:
    """Read the documents of files and folders.

    * .jsonl, .ndjson: an object a line with a `text` and perhaps an `id` or `_id` and a `title`; its other
      fields that are texts or numbers are metadata;
    * .csv, .tsv: the same by columns, which the first row names;
    * other files: a document a line, named FILE:LINE;
    * a folder: each file in it is one document, named by its path in the folder.

    Files may be compressed. A title becomes the first paragraph of the text.

    Args:
        sources: The files and folders.
        text_field: The field or column that holds the text.

    Raises:
        DataError: A file cannot be read, or a record has no text.
    """
    for source in map(Path, sources):
        if source.is_dir():
            yield from _folder(source)
            continue
        ending = text_ending(source)
        if ending in JSON_LINES:
            records = read_json_lines(source)
        elif ending in _TABLES:
            records = _table_records(source, "\t" if ending == ".tsv" else ",")
        else:
            for number, line in enumerate(read_lines(source), start=1):
                if line.strip():
                    yield Document(id=f"{source.name}:{number}", text=line)
            continue
        for number, record in records:
            yield _document(record, text_field, f"{source.name}:{number}", f"{source}, record {number}")


def _folder(folder: Path) -> Iterator[Document]:
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.is_file() and not hidden:
            text = "\n".join(read_lines(path))
            yield Document(id=path.relative_to(folder).as_posix(), text=text)


def _table_records(path: Path, delimiter: str) -> Iterator[tuple[int, dict[str, Any]]]:
    csv.field_size_limit(_LONGEST_FIELD)
    lines = (f"{line}\n" for line in read_lines(path))
    try:
        for number, record in enumerate(csv.DictReader(lines, delimiter=delimiter, restval=""), start=1):
            yield number, {name: value for name, value in record.items() if isinstance(name, str)}
    except csv.Error as error:
        raise DataError(f"{path}: cannot be read as a table ({error}); check its quotes") from error


def _document(record: dict[str, Any], text_field: str, name: str, where: str) -> Document:
    text = record.pop(text_field, None)
    if not isinstance(text, str):
        raise DataError(
            f"{where}: found {', '.join(map(str, record)) or 'nothing'}, expected a text in {text_field!r}; "
            "choose with text_field"
        )
    title = record.get("title")
    if isinstance(title, str) and title:
        text = f"{title}\n\n{text}"
    ids = [record.pop(key) for key in _IDS if key in record]
    metadata = {key: value for key, value in record.items() if isinstance(value, str | int | float)}
    return Document(id=str(ids[0]) if ids and ids[0] != "" else name, text=text, metadata=metadata)
