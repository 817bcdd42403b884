"""Sentences with the predicates and roles of PropBank, and the file format for them.

columns    tabs: number, word, part of speech, lemma and roleset of a predicate ("_" if the word is none),
           then a column of BIO tags for each predicate, in the order of the predicates; the predicate
           itself is B-V. An empty line ends a sentence; lines that start with "# " are comments.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from elmokit.errors import DataError
from elmokit.tasks.core import Formats, Tokenize, numbered_lines
from elmokit.tasks.tagger import OUTSIDE, is_legal

VERB = "V"  # the role of the predicate itself

_FIXED = 5  # columns before those of the predicates
_NONE = "_"

Row = tuple[str, list[str]]  # the place of a line, and its fields


@dataclass(frozen=True)
class Frame:
    """The roles around one predicate: its position, and a BIO tag for each token of the sentence."""

    predicate: int
    tags: tuple[str, ...]


@dataclass(frozen=True)
class FramedSentence:
    """A sentence with a frame for each of its predicates."""

    tokens: tuple[str, ...]
    frames: tuple[Frame, ...]
    where: str = field(default="", repr=False)

    @property
    def texts(self) -> tuple[tuple[str, ...]]:
        """The one text."""
        return (self.tokens,)

    @property
    def predicates(self) -> tuple[int, ...]:
        """The positions of the predicates."""
        return tuple(frame.predicate for frame in self.frames)


def _read_columns(path: Path, tokenize: Tokenize) -> Iterator[FramedSentence]:
    rows: list[Row] = []
    for where, line in chain(numbered_lines(path), [("", "")]):
        if line.strip():
            if not line.startswith("# "):
                rows.append((where, line.split("\t")))
            continue
        if rows:
            yield _sentence(rows)
        rows = []


def _sentence(rows: Sequence[Row]) -> FramedSentence:
    """Return the sentence of some lines.

    Raises:
        DataError: a line has too few columns, the predicates are not as many as their columns, or tags are
            not legal.
    """
    for where, fields in rows:
        if len(fields) < _FIXED or not fields[1]:
            raise DataError(
                f"{where}: expected at least {_FIXED} columns separated by tabs (number, word, part of "
                f"speech, lemma, roleset), found {len(fields)}; repair the line or remove the sentence"
            )
        if len(fields) != len(rows[0][1]):
            raise DataError(
                f"{where}: found {len(fields)} columns, but {len(rows[0][1])} in the first line of the "
                "sentence; every line of a sentence needs a column for each predicate"
            )
    places = [place for place, (_, fields) in enumerate(rows) if fields[_FIXED - 1] != _NONE]
    columns = len(rows[0][1]) - _FIXED
    if len(places) != columns:
        raise DataError(
            f"{rows[0][0]}: the sentence has {len(places)} predicates (lines with a roleset), but {columns} "
            "columns of tags; expected one column for each predicate"
        )
    frames = []
    for column, place in enumerate(places, start=_FIXED):
        tags = tuple(fields[column] for _, fields in rows)
        _check_tags(tags, rows, place)
        frames.append(Frame(place, tags))
    return FramedSentence(tuple(fields[1] for _, fields in rows), tuple(frames), rows[0][0])


def _check_tags(tags: Sequence[str], rows: Sequence[Row], predicate: int) -> None:
    for (where, _), before, tag in zip(rows, (OUTSIDE, *tags), tags, strict=False):
        letter, dash, kind = tag.partition("-")
        if tag != OUTSIDE and (letter not in ("B", "I") or not dash or not kind):
            raise DataError(f"{where}: {tag!r} is no tag of a role; expected O, or for example B-ARG0")
        if not is_legal(before, tag, "BIO"):
            raise DataError(f"{where}: {tag} follows {before}; expected B-{kind} at the start of an argument")
    if tags[predicate] != f"B-{VERB}":
        where, fields = rows[predicate]
        raise DataError(
            f"{where}: the predicate {fields[1]!r} is tagged {tags[predicate]!r} in its own column, expected "
            f"B-{VERB}; are the columns in the order of the predicates?"
        )


FORMATS = Formats[FramedSentence](
    {"columns": _read_columns}, dict.fromkeys(("", ".txt", ".tsv", ".conll"), "columns")
)
