"""Read JSON lines: a file with an object on each line."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elmokit.base import parse_json, shown
from elmokit.errors import DataError
from elmokit.text.lines import read_lines

JSON_LINES = (".jsonl", ".ndjson")  # what names of such files end with


def read_json_lines(path: str | Path, *, whole: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number of each line that is not blank, and its object.

    Args:
        path: The file, plain or compressed.
        whole: See `read_lines`.

    Raises:
        DataError: The file cannot be read, or a line is no object.
    """
    for number, line in enumerate(read_lines(path, whole=whole), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}: "
        try:
            record = parse_json(line)
        except ValueError as error:
            raise DataError(
                f"{where}{shown(line, 40)} is no JSON ({error}); expected one object per line"
            ) from error
        if not isinstance(record, dict):
            raise DataError(f"{where}expected one object per line, found {shown(line, 40)}")
        yield number, record
