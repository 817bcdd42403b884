"""Labelled pairs of texts and their formats.

tsv, csv   the columns that the caller names ("sentence1,sentence2"), or those of the header (see
           `HEADINGS`); a table of three columns needs no header: label first, then the two texts
jsonl      one object per line with the same keys; a text may be a list of tokens
snli       SNLI's own tables (and MultiNLI's): gold_label, …, sentence1, sentence2
sts        the STS benchmark: genre, file, year, id, score, sentence 1, sentence 2, without a header

Where the label is "-" the annotators of SNLI did not agree: such pairs are left out, and counted.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from elmokit.errors import DataError
from elmokit.tasks.core import (
    Columns,
    Formats,
    Headings,
    LabelledRow,
    Tokenize,
    json_objects,
    numbered_lines,
    read_csv,
    read_tsv,
    string_list,
)

logger = logging.getLogger(__name__)

RowReader: TypeAlias = Callable[[Path, Columns, Headings], Iterator[LabelledRow]]
Texts: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]

HEADINGS = Headings(
    texts=(
        ("premise", "hypothesis"),
        ("sentence1", "sentence2"),
        ("text1", "text2"),
        ("text_a", "text_b"),
        ("question1", "question2"),
    ),
    labels=("label", "gold_label", "score"),
)
_UNDECIDED = "-"
_STS_COLUMNS = 7  # some rows have more: where the texts come from


@dataclass(frozen=True)
class LabelledPair:
    """Two texts, premise and hypothesis, with a label: a name, or a number for a score."""

    texts: Texts
    label: str
    where: str = field(default="", repr=False)


def _labelled(rows: Iterable[tuple[str, Texts, str]], path: Path) -> Iterator[LabelledPair]:
    """Yield the pairs that have a label.

    Raises:
        DataError: a label is missing.
    """
    undecided = 0
    for where, texts, label in rows:
        if not label.strip():
            raise DataError(f"{where}: found no label for the pair; label the line or remove it")
        if label.strip() == _UNDECIDED:
            undecided += 1
            continue
        yield LabelledPair(texts, label.strip(), where)
    if undecided:
        logger.warning("%s: %d pairs with the label %r are left out", path, undecided, _UNDECIDED)


def _read_table(
    rows: RowReader,
    path: Path,
    tokenize: Tokenize,
    columns: Columns = Columns(),  # noqa: B008
) -> Iterator[LabelledPair]:
    found = rows(path, columns, HEADINGS)
    pairs = ((where, (tuple(tokenize(a)), tuple(tokenize(b))), label) for where, (a, b), label in found)
    yield from _labelled(pairs, path)


def _read_sts(path: Path, tokenize: Tokenize) -> Iterator[LabelledPair]:
    def rows() -> Iterator[tuple[str, Texts, str]]:
        for where, line in numbered_lines(path):
            cells = line.split("\t")
            if len(cells) < _STS_COLUMNS:
                raise DataError(
                    f"{where}: expected {_STS_COLUMNS} columns separated by tabs, the fifth a score, the "
                    f"sixth and seventh the texts; found {line!r:.60}"
                )
            yield where, (tuple(tokenize(cells[5])), tuple(tokenize(cells[6]))), cells[4]

    yield from _labelled(rows(), path)


def _read_jsonl(path: Path, tokenize: Tokenize, columns: Columns) -> Iterator[LabelledPair]:
    def rows() -> Iterator[tuple[str, Texts, str]]:
        named = columns.texts(2)
        keys = [tuple(named)] if named else list(HEADINGS.texts)
        labels = [columns.label] if columns.label is not None else list(HEADINGS.labels)
        for where, data in json_objects(path):
            texts = next((names for names in keys if all(name in data for name in names)), None)
            label = next((name for name in labels if name in data), None)
            if texts is None or label is None or not isinstance(data[label], str | int | float):
                raise DataError(
                    f"{where}: expected two texts, such as {' and '.join(keys[0])}, and a label under "
                    f"{' or '.join(labels)}, found the keys {', '.join(data):.80}; name others with "
                    "text_column=NAME,NAME and label_column=NAME"
                )
            first, second = (json_tokens(data, name, tokenize, where) for name in texts)
            yield where, (first, second), str(data[label])

    yield from _labelled(rows(), path)


def json_tokens(data: dict[str, Any], key: str, tokenize: Tokenize, where: str) -> tuple[str, ...]:
    """Return the tokens of a text in a JSON object, which may be tokenised already."""
    found = data[key]
    return tuple(tokenize(found)) if isinstance(found, str) else string_list(data, key, where)


FORMATS = Formats[LabelledPair](
    {
        "tsv": partial(_read_table, read_tsv),
        "csv": partial(_read_table, read_csv),
        "jsonl": _read_jsonl,
        "snli": partial(_read_table, read_tsv),
        "sts": _read_sts,
    },
    {".tsv": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".txt": "snli"},
    with_columns=frozenset(("tsv", "csv", "jsonl")),
)


def scores_of(examples: Iterable[LabelledPair]) -> list[float]:
    """Return the labels as numbers.

    Raises:
        DataError: one is no number; the message names the place.
    """
    found = []
    for example in examples:
        try:
            number = float(example.label)
        except ValueError:
            number = float("nan")
        if not abs(number) < float("inf"):
            raise DataError(
                f"{example.where}: expected a number as the score of the pair, found {example.label!r:.60}; "
                "correct it, or leave out head.regression, so that labels are names"
            )
        found.append(number)
    return found
