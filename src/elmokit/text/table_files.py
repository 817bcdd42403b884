"""Read tables row by row, and one of their columns as a text: CSV, TSV and JSON lines."""

import csv
import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from elmokit.base import shown, text_ending
from elmokit.errors import DataError
from elmokit.text.json_lines import JSON_LINES, read_json_lines
from elmokit.text.lines import read_lines

logger = logging.getLogger(__name__)

Row: TypeAlias = tuple[str, list[str]]  # a place, "FILE, line N", and the cells

_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_SAMPLE = 100  # lines that tell the delimiter
_QUOTED = re.compile(r'"(?:[^"]|"")*""(?:[^"]|"")*"')


@dataclass(frozen=True)
class TextColumn:
    """A column of a table, read as a text with a sentence in each row.

    Wherever elmokit reads a text file, it takes this in place of the path.

    Attributes:
        path: A .csv, .tsv or .jsonl file, plain or compressed. CSV may have semicolons or tabs in place of
            commas.
        name: The name of the column in the first row, in upper or lower case; its number from 1 if the table
            has no header; or the key of JSON lines.

    Example:
        >>> elmokit.embed_file(elmo, TextColumn("mails.csv", "message"), "mails.h5")      # doctest: +SKIP
    """

    path: str | Path
    name: str = "text"

    def __str__(self) -> str:
        return str(self.path)


def is_table(path: str | Path) -> bool:
    """Return whether the name of a file says that it is a table."""
    return text_ending(path) in (".csv", ".tsv", *JSON_LINES)


def read_columns(path: str | Path, **names: str) -> Iterator[tuple[str, ...]]:
    """Return the cells of some columns, row by row.

    Args:
        path: The table.
        **names: The name of each column, under what the column is for: the "text", say.

    Raises:
        DataError: The file is no table, has no such columns, or a row has fewer cells than the first one.
    """
    if not is_table(path):
        raise DataError(f"{path} is no table; pass a .csv, .tsv or .jsonl file")
    if text_ending(path) in JSON_LINES:
        return _json_cells(Path(path), names)
    return _cells(csv_rows(path) if text_ending(path) == ".csv" else tsv_rows(path), names)


def tsv_rows(path: str | Path, *, whole: bool = False) -> Iterator[Row]:
    """Yield the rows of a table whose cells are separated by tabs; `whole` is that of `read_lines`."""
    for number, line in enumerate(read_lines(path, whole=whole), start=1):
        if line.strip():
            yield f"{path}, line {number}", [_unquoted(cell) for cell in line.split("\t")]


def csv_rows(path: str | Path, *, whole: bool = False) -> Iterator[Row]:
    """Yield the rows of a CSV file, in which a quoted cell may span several lines.

    Commas, semicolons or tabs are recognised; `whole` is that of `read_lines`.
    """
    delimiter = _find_delimiter(path)
    if delimiter != ",":
        logger.warning("%s: its columns are separated by %s", path, _DELIMITERS[delimiter])
    lines = (f"{line}\n" for line in read_lines(path, whole=whole))
    rows = csv.reader(lines, strict=True, delimiter=delimiter)
    done = 0
    try:
        for row in rows:
            if row:
                yield f"{path}, line {done + 1}", row
            done = rows.line_num
    except csv.Error as error:
        raise DataError(
            f"{path}, line {done + 1}: is no CSV ({error}); close the quotes there, and double those within"
        ) from error


def why_no_column(known: Sequence[str], name: str) -> str:
    """Say why a name selects no column: it is not among the `known` names, or more than one has it."""
    return "is the name of several columns" if name.strip().lower() in known else "is not one of its columns"


def shown_cells(cells: Sequence[str]) -> str:
    """Return the cells of a row for a message, long ones shortened.

    Example:
        >>> shown_cells(["id", "a sentence that is far too long for this"])
        "'id', 'a sentence that is far too …'"
    """
    return ", ".join(shown(cell, 30) for cell in cells)


def _unquoted(cell: str) -> str:
    """Remove the quotes around a cell that was quoted as in CSV, and undouble those inside."""
    return cell[1:-1].replace('""', '"') if _QUOTED.fullmatch(cell) else cell


def _find_delimiter(path: str | Path) -> str:
    """Return the delimiter that gives all of the first rows, or at least the first one, several columns."""
    sample = [f"{line}\n" for line in islice(read_lines(path), _SAMPLE + 1)]
    widths = {delimiter: _widths(sample, delimiter) for delimiter in _DELIMITERS}
    possible = [delimiter for delimiter, found in widths.items() if found and found[0] > 1]
    fitting = [delimiter for delimiter in possible if len(set(widths[delimiter])) == 1]
    return (fitting or possible or [","])[0]


def _widths(lines: list[str], delimiter: str) -> list[int]:
    try:
        found = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
    except csv.Error:  # which is reported when the file is read
        return []
    return found[:-1] if len(lines) > _SAMPLE else found  # the last row may go on after the sample


def _cells(rows: Iterator[Row], names: dict[str, str]) -> Iterator[tuple[str, ...]]:
    where, first = next(rows, ("", []))
    if not first:
        return
    headings = [heading.strip().lower() for heading in first]
    wanted = [name.strip().lower() for name in names.values()]
    numbered = all(name.isdecimal() and name not in headings for name in wanted)
    known = [str(number) for number in range(1, len(first) + 1)] if numbered else headings
    for use, name in zip(names, wanted, strict=True):
        if known.count(name) != 1:
            raise DataError(
                f"{where}: {use}_column={names[use]!r} {why_no_column(known, name)}. The first row has "
                f"{shown_cells(first)}; pass {use}_column=NAME, or the number of the column (from 1) if that "
                "row is no header"
            )
    places = [known.index(name) for name in wanted]
    if numbered:
        yield tuple(first[place] for place in places)
    for where, row in rows:
        if len(row) != len(first):
            raise DataError(
                f"{where}: expected {len(first)} columns, found {len(row)}, {shown_cells(row)}; complete the "
                "row, or put quotes around cells that hold the delimiter"
            )
        yield tuple(row[place] for place in places)


def _json_cells(path: Path, names: dict[str, str]) -> Iterator[tuple[str, ...]]:
    for number, record in read_json_lines(path):
        for use, name in names.items():
            if not isinstance(record.get(name), str):
                raise DataError(
                    f"{path}, line {number}: expected a string under {use}_column={name!r}, found "
                    f"{shown_cells(list(record))}"
                )
        yield tuple(record[name] for name in names.values())
