"""CSV and TSV: a row for each token, sentence or use of a word, for people, spreadsheets and statistics.

line               number of the sentence in the text, from 1
text               the sentence (not in rows of tokens, which would repeat it)
token              or `word` for uses; neither for sentences
start, end         of the token or word in the text
v0, v1, …          its numbers; `layer_0_v0`, … if there are several layers

A CSV begins with a byte order mark, without which Excel takes UTF-8 for something else; a TSV does not. A
line without tokens has no row of tokens. Neither format has a place for the settings.
"""

import codecs
import csv
import re
from collections.abc import Iterator, Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any

import numpy as np

from elmokit.vectors.rows import Layout, Row, StoredSentence, Unit

_BOM = codecs.BOM_UTF8
_NUMBER = re.compile(r"(layer_\d+_)?v\d+")
_COLUMNS: dict[Unit, list[str]] = {
    "token": ["line", "token", "start", "end"],
    "sentence": ["line", "text"],
    "use": ["line", "text", "word", "start", "end"],
}


def write_csv(
    path: Path, rows: Iterator[Row], layout: Layout, count: int, metadata: Mapping[str, Any]
) -> None:
    """Write values separated by commas."""
    _write(path, rows, layout, delimiter=",", mark=_BOM)


def write_tsv(
    path: Path, rows: Iterator[Row], layout: Layout, count: int, metadata: Mapping[str, Any]
) -> None:
    """Write values separated by tabs."""
    _write(path, rows, layout, delimiter="\t", mark=b"")


def looks_like_table(head: bytes) -> bool:
    """Return whether a file that begins with these bytes may be a CSV or TSV from here."""
    return head.removeprefix(_BOM).startswith((b"line,", b"line\t"))


def _write(path: Path, rows: Iterator[Row], layout: Layout, *, delimiter: str, mark: bytes) -> None:
    dim, names = layout.shape[-1], layout.names()
    prefixes = [f"{name}_v" for name in names] if layout.several else ["v"]
    header = _COLUMNS[layout.unit] + [f"{prefix}{number}" for prefix in prefixes for number in range(dim)]
    with path.open("wb") as file:
        file.write(mark)
        # A lone surrogate, which UTF-8 cannot hold, is written as its escape.
        text = TextIOWrapper(file, "utf-8", errors="backslashreplace", newline="")
        writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
        writer.writerow(header)
        for row in rows:
            writer.writerows(_cells(row, layout))
        text.flush()
        text.detach()


def _cells(row: Row, layout: Layout) -> Iterator[list[Any]]:
    if layout.unit == "token":
        for at, (token, span) in enumerate(zip(row.tokens, row.offsets, strict=True)):
            yield [row.line, token, *span, *_numbers(row.vectors[..., at, :])]
    elif layout.unit == "use":
        yield [row.line, row.text, row.tokens[0], *row.offsets[0], *_numbers(row.vectors)]
    else:
        yield [row.line, row.text, *_numbers(row.vectors)]


def _numbers(values: Any) -> list[str]:  # noqa: ANN401
    """Return each number by the fewest digits that tell it from its neighbours."""
    digits: list[str] = values.reshape(-1).astype(str).tolist()
    return digits


class CsvVectors:
    """An open file from `write_csv` or `write_tsv`; sentences are read on demand.

    Rows of tokens are put together to their sentences again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as file:
            line = file.readline()
        first = line.decode("utf-8-sig").rstrip("\r\n")
        self._delimiter = "\t" if first.startswith("line\t") else ","
        header = next(csv.reader([first], delimiter=self._delimiter))
        self._unit, names = _meaning(header)
        self.metadata: Mapping[str, Any] = {"unit": self._unit}
        self._num_fields = len(_COLUMNS[self._unit])
        self._layers = len({name.rpartition("_")[0] for name in names})
        self._several = "_" in names[0]
        # Where the rows of each sentence start, and where the last one ends.
        self._starts: list[int] = []
        last = None
        for start, cells in self._records(len(line)):
            if self._unit != "token" or cells[0] != last:
                self._starts.append(start)
            last = cells[0]
        self._starts.append(path.stat().st_size)
        self.num_sentences = len(self._starts) - 1

    def sentence(self, number: int) -> StoredSentence:
        """Read one sentence."""
        rows = [cells for _, cells in self._records(self._starts[number], self._starts[number + 1])]
        known = [dict(zip(_COLUMNS[self._unit], cells, strict=False)) for cells in rows]
        fields: dict[str, Any] = {"line": int(known[0]["line"]), "text": known[0].get("text")}
        if self._unit != "sentence":
            fields["tokens"] = [row["token" if self._unit == "token" else "word"] for row in known]
            fields["offsets"] = [(int(row["start"]), int(row["end"])) for row in known]
        flat = np.array([cells[self._num_fields :] for cells in rows], np.float32)  # (T, layers · D)
        values = flat.reshape(len(rows), self._layers, -1).swapaxes(0, 1)  # (layers, T, D)
        values = values if self._unit == "token" else values[:, 0]
        array = np.ascontiguousarray(values if self._several else values[0])
        return StoredSentence.of(array, fields, unit=self._unit, several=self._several)

    def _records(self, start: int, end: int | None = None) -> Iterator[tuple[int, list[str]]]:
        """Yield start and cells of the records between two places; a quoted cell may hold line ends."""
        place = start

        def lines(file: IO[bytes]) -> Iterator[str]:
            nonlocal place
            while (end is None or place < end) and (line := file.readline()):
                place += len(line)
                yield line.decode()

        with self._path.open("rb") as file:
            file.seek(start)
            for cells in csv.reader(lines(file), delimiter=self._delimiter):
                yield start, cells
                start = place

    def close(self) -> None:
        """Do nothing: the file is open only while it is read."""


def _meaning(header: list[str]) -> tuple[Unit, list[str]]:
    """Return what a row is, and the names of its numbers."""
    for unit, columns in _COLUMNS.items():
        names = header[len(columns) :]
        if header[: len(columns)] == columns and names and all(map(_NUMBER.fullmatch, names)):
            return unit, names
    raise ValueError(f"expected the columns line, token or text, and v0, v1, …, found {header[:6]}")
