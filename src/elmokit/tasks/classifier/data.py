"""Labelled texts and their formats.

tsv, csv   the columns that the caller names, or "label" and "text" of the header; a table of two columns
           needs no header: label first, text last. CSV may have semicolons or tabs in place of commas
fasttext   __label__a __label__b text
at         text@label
trec       COARSE:fine text (the coarse class; trec-fine: both)
jsonl      one object per line: "text" or "tokens"; "label", "labels" or "intent"; or as the caller names them
seq        a folder with seq.in and label
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from elmokit.base import shown
from elmokit.errors import DataError
from elmokit.tasks.core import (
    SEVERAL,
    Columns,
    Formats,
    LabelledRow,
    Tokenize,
    json_lines,
    numbered_lines,
    parallel_lines,
    read_csv,
    read_tsv,
)

RowReader: TypeAlias = Callable[[Path, Columns], Iterator[LabelledRow]]

_FASTTEXT = "__label__"


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


def _read_table(rows: RowReader, path: Path, tokenize: Tokenize, columns: Columns) -> Iterator[LabelledText]:
    for where, (text,), cell in rows(path, columns):
        labels = tuple(label.strip() for label in cell.split(SEVERAL) if label.strip())
        yield LabelledText(tuple(tokenize(text)), labels, where)


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
                raise DataError(f"{where}: expected text@label, found {shown(line)}")
            yield LabelledText(tuple(tokenize(text)), _given(label), where)


def _read_trec(path: Path, tokenize: Tokenize, *, fine: bool = False) -> Iterator[LabelledText]:
    for where, line in numbered_lines(path):
        if line.strip():
            label, _, text = line.partition(" ")
            coarse, _, rest = label.partition(":")
            if not rest:
                raise DataError(f"{where}: expected COARSE:fine and a question, found {shown(line)}")
            yield LabelledText(tuple(tokenize(text)), (label if fine else coarse,), where)


def _given(label: str) -> tuple[str, ...]:
    return (label.strip(),) if label.strip() else ()


def _read_jsonl(path: Path, tokenize: Tokenize, columns: Columns) -> Iterator[LabelledText]:
    for where, data, tokens in json_lines(path, tokenize, text=columns.text or "text"):
        yield LabelledText(tokens, json_labels(data, where, columns.label), where)


def json_labels(data: Mapping[str, Any], where: str, key: str | None = None) -> tuple[str, ...]:
    """Return what stands under a key ("labels", "label" or "intent"): one label, a list of them, or none."""
    keys = ("labels", "label", "intent") if key is None else (key,)
    if key is not None and key not in data:
        raise DataError(f"{where}: label_column={key!r} is not among its keys, {', '.join(data):.60}")
    found: object = next((data[key] for key in keys if data.get(key) is not None), [])
    labels = found if isinstance(found, list) else [found]
    if not all(isinstance(label, str | int | float) for label in labels):
        raise DataError(f"{where}: expected a label or a list of them, found {shown(found)}")
    return tuple(str(label) for label in labels)


def _read_seq(folder: Path, tokenize: Tokenize) -> Iterator[LabelledText]:
    for where, (words, label) in parallel_lines(folder, ("seq.in", "label")):
        if words.strip():
            yield LabelledText(tuple(words.split()), _given(label), where)


FORMATS = Formats[LabelledText](
    {
        "tsv": partial(_read_table, read_tsv),
        "csv": partial(_read_table, read_csv),
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
    with_columns=frozenset(("tsv", "csv", "jsonl")),
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
