"""Tables with one or more columns of texts and a column of labels: TSV and CSV.

Which columns these are is said by the caller or by a header. Without either, a table that has no other
columns has the label first; nothing else is guessed.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from elmokit.base import shown
from elmokit.errors import DataError
from elmokit.tasks.core.labelled_files import Columns
from elmokit.text import Row, csv_rows, shown_cells, tsv_rows

logger = logging.getLogger(__name__)

LabelledRow: TypeAlias = tuple[str, tuple[str, ...], str]  # a place, the texts and the label

SEVERAL = "|"  # between the labels of one text
_HEADING_WORDS = 3  # that a heading has at most


@dataclass(frozen=True)
class Headings:
    """The headings that a task knows without being told.

    Attributes:
        texts: alternatives, each with a heading for every text of an example.
        labels: alternatives for the label.
    """

    texts: Sequence[tuple[str, ...]] = (("text",),)
    labels: Sequence[str] = ("label",)

    @property
    def count(self) -> int:
        """The number of texts of an example."""
        return len(self.texts[0])


@dataclass(frozen=True)
class _Places:
    """Where the texts and the label of a row are, and whether the first row is a header."""

    texts: tuple[int, ...]
    label: int
    header: bool


def read_tsv(path: Path, columns: Columns, headings: Headings = Headings()) -> Iterator[LabelledRow]:  # noqa: B008
    """Yield place, texts and label of each row of a table whose cells are separated by tabs."""
    return _labelled(list(tsv_rows(path, whole=True)), columns, headings)


def read_csv(path: Path, columns: Columns, headings: Headings = Headings()) -> Iterator[LabelledRow]:  # noqa: B008
    """Yield place, texts and label of each row of a CSV file; commas, semicolons or tabs are recognised."""
    return _labelled(list(csv_rows(path, whole=True)), columns, headings)


def _labelled(rows: Sequence[Row], columns: Columns, headings: Headings) -> Iterator[LabelledRow]:
    if not rows:
        return
    places, width = _find_places(rows, columns, headings), max(1 + headings.count, len(rows[0][1]))
    for where, row in rows[places.header :]:
        if len(row) != width:
            expected = "a text" if headings.count == 1 else f"{headings.count} texts"
            raise DataError(
                f"{where}: expected a label and {expected} in {width} columns, found "
                f"{shown(row)} in {len(row)}; label the line, put each text into one column, or remove it"
            )
        yield where, tuple(row[place] for place in places.texts), row[places.label]


def _find_places(rows: Sequence[Row], columns: Columns, headings: Headings) -> _Places:
    """Find the columns by what the caller said, by the header, or as the only ones there are.

    Raises:
        DataError: they cannot be told; the message lists the columns.
    """
    where, first = rows[0]
    heads = [heading.strip().lower() for heading in first]
    named = columns.texts(headings.count)
    said = [*named, *([] if columns.label is None else [columns.label])]
    numbered = bool(said) and all(name.isdecimal() and name not in heads for name in said)
    known = [str(number) for number in range(1, len(first) + 1)] if numbered else heads
    texts = [_find(known, name, "text", rows[0], headings) for name in named]
    texts = texts or next(filter(None, (_places_of(known, names) for names in headings.texts)), [])
    label = next((places[0] for name in headings.labels if (places := _places_of(known, [name]))), None)
    if columns.label is not None:
        label = _find(known, columns.label, "label", rows[0], headings)
    if said and len(first) == 1 + headings.count:  # what is not named is what is left
        left = [place for place in range(len(first)) if place != label and place not in texts]
        texts, label = texts or left, left[0] if label is None else label
    if texts and label is not None and len({*texts, label}) == 1 + headings.count:
        header = not numbered or _looks_like_header(rows, texts[-1], label)
        if numbered and header:
            logger.warning(
                "%s: taken for a header, since %r is the label of no other line", where, first[label]
            )
        return _Places(tuple(texts), label, header)
    unnamed = not said and not texts and label is None and len(first) <= 1 + headings.count
    if unnamed and _looks_like_examples(rows):
        return _Places(tuple(range(1, 1 + headings.count)), label=0, header=False)
    which = "column is the text" if headings.count == 1 else "columns are the texts"
    raise DataError(f"{where}: which {which}, and which the label? {_hint(first, headings)}")


def _places_of(known: Sequence[str], names: Sequence[str]) -> list[int]:
    """Return the places of columns, or none at all unless each is there once."""
    return [known.index(name) for name in names] if all(known.count(name) == 1 for name in names) else []


def _find(known: Sequence[str], name: str, kind: str, row: Row, headings: Headings) -> int:
    """Return the place of a column that the caller named."""
    places = _places_of(known, [name.strip().lower()])
    if places:
        return places[0]
    where, first = row
    problem = (
        "is the name of several columns" if name.strip().lower() in known else "is not one of its columns"
    )
    raise DataError(f"{where}: {kind}_column={name!r} {problem}. {_hint(first, headings)}")


def _hint(first: Sequence[str], headings: Headings) -> str:
    names = ",".join(["NAME"] * headings.count)
    return (
        f"The first row has {shown_cells(first)}; pass text_column={names} and label_column=NAME, or the "
        "numbers of the columns (from 1) if that row is no header"
    )


def _looks_like_examples(rows: Sequence[Row]) -> bool:
    """Return whether rows without names seem to be labels and texts: no header, and labels that recur."""
    labels, texts = ({row[place] for _, row in rows} for place in (0, -1))
    return len(labels) <= len(texts) and not _looks_like_header(rows, text=-1, label=0)


def _looks_like_header(rows: Sequence[Row], text: int, label: int) -> bool:
    """Return whether the first row has a label that never recurs, and a text as short as a heading."""
    (_, first), *rest = rows
    others = [row for _, row in rest if len(row) == len(first)]
    labels = [one for row in others for one in row[label].split(SEVERAL)]
    words = len(first[text].split())
    if not others or first[label] in labels or words > _HEADING_WORDS:
        return False
    longer = sum(len(row[text].split()) > words for row in others)
    return len(set(labels)) < len(labels) or 2 * longer > len(others)
