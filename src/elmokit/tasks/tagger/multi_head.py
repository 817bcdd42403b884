"""Sentences with entities and relations in the multi-head format (Bekoulis et al. 2018), as CoNLL-04 has it.

    #doc 5121
    0	Oswald	B-Peop	['Kill']	[3]
    1	shot	O	['N']	[1]
    2	John	B-Peop	['N']	[2]
    3	Kennedy	I-Peop	['N']	[3]

The columns are number, word, BIO tag of its entity, names of relations, and for each of these the number of
the last word of the other entity. Relations stand at the last word of an entity; "N" is none.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from elmokit.base import shown
from elmokit.errors import DataError
from elmokit.tasks.core import numbered_lines
from elmokit.tasks.tagger.schemes import Span, find_spans

_BEGIN = "#doc"
_NO_RELATION = "N"


@dataclass(frozen=True)
class RelatedEntities:
    """A sentence with its entities and relations.

    Attributes:
        tokens: of the sentence.
        tags: BIO, one for each token.
        spans: the entities, in order.
        relations: numbers of the two entities, in the order that the relation has, and its name.
        where: file and line.
    """

    tokens: tuple[str, ...]
    tags: tuple[str, ...]
    spans: tuple[Span, ...]
    relations: tuple[tuple[int, int, str], ...]
    where: str


_Row = tuple[str, list[str]]  # the place of a line, and its fields


def read_multi_head(path: Path) -> Iterator[RelatedEntities]:
    """Yield the sentences of a file.

    Raises:
        DataError: a line has other columns, or a relation is not between the last words of two entities.
    """
    rows: list[_Row] = []
    for where, line in chain(numbered_lines(path), [("", _BEGIN)]):
        if line.startswith(_BEGIN):
            if rows:
                yield _sentence(rows)
            rows = []
        elif line.strip():
            fields = line.split("\t")
            if len(fields) != 5 or not fields[1] or fields[0] != str(len(rows)):
                raise DataError(
                    f"{where}: expected five columns separated by tabs (the number {len(rows)}, word, tag, "
                    f"relations, heads), found {shown(line)}; repair the line, and begin each sentence with "
                    f"a line {_BEGIN}"
                )
            rows.append((where, fields))


def _sentence(rows: Sequence[_Row]) -> RelatedEntities:
    tags = tuple(fields[2] for _, fields in rows)
    spans = tuple(find_spans(tags))
    at_end = {span.end - 1: number for number, span in enumerate(spans)}
    relations = []
    for place, (where, fields) in enumerate(rows):
        for name, other in _relations(where, fields):
            if name == _NO_RELATION:
                continue
            if place not in at_end or other not in at_end or place == other:
                raise DataError(
                    f"{where}: {name} is between the words {place} and {other}, expected the last words of "
                    "two entities; repair the tags or the relation"
                )
            relations.append((at_end[place], at_end[other], name))
    tokens = tuple(fields[1] for _, fields in rows)
    return RelatedEntities(tokens, tags, spans, tuple(relations), rows[0][0])


def _relations(where: str, fields: Sequence[str]) -> list[tuple[str, int]]:
    """Return the names of the relations of a line with the words that they lead to."""
    try:
        names, others = ast.literal_eval(fields[3]), ast.literal_eval(fields[4])
        pairs = list(zip(names, others, strict=True))
        if all(isinstance(name, str) and isinstance(other, int) for name, other in pairs):
            return pairs
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        pass
    raise DataError(
        f"{where}: expected lists of equal length such as ['Kill'] and [3], found {shown(fields[3])} and "
        f"{shown(fields[4])}; repair the line"
    )
