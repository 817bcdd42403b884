"""Labelled texts and their formats.

tsv, csv   with a header that names "label" and "text", or without one: label first, text last
fasttext   __label__a __label__b text
at         text@label
trec       COARSE:fine text (the coarse class; trec-fine: both)
jsonl      one object per line: "text" or "tokens"; "label", "labels" or "intent"
seq        a folder with seq.in and label
"""

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from elmokit.errors import DataError
from elmokit.tasks.core import Formats, Tokenize, json_lines, numbered_lines, parallel_lines
from elmokit.text import read_lines

_FASTTEXT = "__label__"
_SEVERAL = "|"  # between the labels of one text in a table


@dataclass(frozen=True)
class LabelledText:
    """A text with its labels: usually one."""

    tokens: tuple[str, ...]
    labels: tuple[str, ...]
    where: str = field(default="", repr=False)

    @property
    def texts(self) -> tuple[tuple[str, ...]]:
        """The one text."""
        return (self.tokens,)


def _read_tsv(path: Path, tokenize: Tokenize) -> Iterator[LabelledText]:
    rows = ((where, line.split("\t")) for where, line in numbered_lines(path) if line.strip())
    yield from _table(rows, tokenize)


def _read_csv(path: Path, tokenize: Tokenize) -> Iterator[LabelledText]:
    yield from _table(_csv_rows(path), tokenize)


def _csv_rows(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each row after the place of its first line: a quoted field may span several lines."""
    rows = csv.reader((f"{line}\n" for line in read_lines(path)), strict=True)
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


def _table(rows: Iterable[tuple[str, list[str]]], tokenize: Tokenize) -> Iterator[LabelledText]:
    label_at, text_at, width = 0, -1, 0
    for where, row in rows:
        if not width:  # the first row
            width = max(2, len(row))
            headings = [heading.strip().lower() for heading in row]
            named = [heading for heading in ("label", "text") if heading in headings]
            if len(named) == 2:
                label_at, text_at = headings.index("label"), headings.index("text")
                continue
            if named:
                raise DataError(
                    f'{where}: a header must name "label" and "text", found {row!r:.60}; '
                    "rename its columns, or leave it out: label first, text last"
                )
        if len(row) != width:
            raise DataError(
                f"{where}: expected a label and a text in {width} columns, found "
                f"{row!r:.60} in {len(row)}; label the line, put its text into one column, or remove it"
            )
        labels = tuple(label.strip() for label in row[label_at].split(_SEVERAL) if label.strip())
        yield LabelledText(tuple(tokenize(row[text_at])), labels, where)


def _read_fasttext(path: Path, tokenize: Tokenize) -> Iterator[LabelledText]:
    for where, line in numbered_lines(path):
        words = line.split()
        if not words:
            continue
        others = (place for place, word in enumerate(words) if not word.startswith(_FASTTEXT))
        count = next(others, len(words))
        labels = tuple(word.removeprefix(_FASTTEXT) for word in words[:count])
        text = line.split(maxsplit=count)[count] if count < len(words) else ""
        yield LabelledText(tuple(tokenize(text)), labels, where)


def _read_at(path: Path, tokenize: Tokenize) -> Iterator[LabelledText]:
    for where, line in numbered_lines(path):
        if line.strip():
            text, at, label = line.rpartition("@")
            if not at:
                raise DataError(f"{where}: expected text@label, found {line!r:.60}")
            yield LabelledText(tuple(tokenize(text)), _given(label), where)


def _read_trec(path: Path, tokenize: Tokenize, *, fine: bool = False) -> Iterator[LabelledText]:
    for where, line in numbered_lines(path):
        if line.strip():
            label, _, text = line.partition(" ")
            coarse, _, rest = label.partition(":")
            if not rest:
                raise DataError(f"{where}: expected COARSE:fine and a question, found {line!r:.60}")
            yield LabelledText(tuple(tokenize(text)), (label if fine else coarse,), where)


def _given(label: str) -> tuple[str, ...]:
    return (label.strip(),) if label.strip() else ()


def _read_jsonl(path: Path, tokenize: Tokenize) -> Iterator[LabelledText]:
    for where, data, tokens in json_lines(path, tokenize):
        yield LabelledText(tokens, json_labels(data, where), where)


def json_labels(data: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Return what stands under "labels", "label" or "intent": one label, a list of them, or none."""
    keys = ("labels", "label", "intent")
    found: object = next((data[key] for key in keys if data.get(key) is not None), [])
    labels = found if isinstance(found, list) else [found]
    if not all(isinstance(label, str | int | float) for label in labels):
        raise DataError(f"{where}: expected a label or a list of them, found {found!r:.60}")
    return tuple(str(label) for label in labels)


def _read_seq(folder: Path, tokenize: Tokenize) -> Iterator[LabelledText]:
    for where, (words, label) in parallel_lines(folder, ("seq.in", "label")):
        if words.strip():
            yield LabelledText(tuple(words.split()), _given(label), where)


FORMATS = Formats[LabelledText](
    {
        "tsv": _read_tsv,
        "csv": _read_csv,
        "fasttext": _read_fasttext,
        "at": _read_at,
        "trec": _read_trec,
        "trec-fine": partial(_read_trec, fine=True),
        "jsonl": _read_jsonl,
        "seq": _read_seq,
    },
    {
        ".tsv": "tsv",
        ".csv": "csv",
        ".ft": "fasttext",
        ".fasttext": "fasttext",
        ".jsonl": "jsonl",
        "/seq.in": "seq",
    },
)


def expect_one_label(examples: Iterable[LabelledText]) -> None:
    """Raise a DataError if a text has no label, or more than one."""
    for example in examples:
        if not example.labels:
            raise DataError(
                f"{example.where}: found no label for the text; label the line or remove it, or set "
                "head.multi_label=true, so that a text may have any number of labels"
            )
        if len(example.labels) > 1:
            raise DataError(
                f"{example.where}: found the labels {', '.join(example.labels)}, expected one; set "
                "head.multi_label=true, so that a text may have several"
            )
