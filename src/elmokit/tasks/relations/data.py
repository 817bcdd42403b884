"""Texts with marked entities and the relations between pairs of them.

An entity has one or more mentions: spans of tokens, counted through all sentences of the text. A pair has a
label. If that ends in "(e1,e2)" or "(e2,e1)", it says which way the relation goes between the entities of the
pair; otherwise it goes from the first to the second, or both ways.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from elmokit.base import shown
from elmokit.errors import DataError
from elmokit.text import Token

Place = tuple[int, int]  # of a mention: tokens [start, end), or characters

FORWARD, BACKWARD = "(e1,e2)", "(e2,e1)"
NO_RELATION = "none"
UNKNOWN = ""  # the kind of an entity

_MARK = re.compile(r"<(/?)e(\d{1,4})>")


@dataclass(frozen=True)
class MarkedEntity:
    """An entity: its mentions, in order, and what kind of thing it is ("" if that is not known)."""

    mentions: tuple[Place, ...]
    kind: str = UNKNOWN


@dataclass(frozen=True)
class EntityPair:
    """Two entities of a text by their numbers, and the label of the pair."""

    head: int
    tail: int
    label: str = ""


@dataclass(frozen=True)
class RelationText:
    """The sentences of a text, its entities, and labelled pairs of these."""

    texts: tuple[tuple[str, ...], ...]
    entities: tuple[MarkedEntity, ...]
    pairs: tuple[EntityPair, ...]
    where: str = field(default="", repr=False)

    @property
    def tokens(self) -> list[str]:
        """The tokens of all sentences."""
        return [token for text in self.texts for token in text]


def split_label(label: str) -> tuple[str, bool]:
    """Return the name of a relation, and whether it goes from the second entity to the first.

    Example:
        >>> split_label("Cause-Effect(e2,e1)"), split_label("Cause-Effect(e1,e2)"), split_label("Other")
        (('Cause-Effect', True), ('Cause-Effect', False), ('Other', False))
    """
    return label.removesuffix(BACKWARD).removesuffix(FORWARD), label.endswith(BACKWARD)


def read_marks(text: str, where: str) -> tuple[str, list[list[Place]]]:
    """Take the marks out of a text such as "<e1>Ada</e1> met <e2>Grace</e2>".

    Returns:
        The text without marks, and the places of each entity in it: those with the same number belong
        together, and entities are in the order of their numbers.

    Raises:
        DataError: a mark is not closed, or not opened.
    """
    plain, at = "", 0
    opened: dict[int, int] = {}
    places: dict[int, list[Place]] = {}
    for mark in _MARK.finditer(text):
        plain += text[at : mark.start()]
        at = mark.end()
        number = int(mark[2])
        if not mark[1] and number not in opened:
            opened[number] = len(plain)
            continue
        start = opened.pop(number, len(plain)) if mark[1] else len(plain)
        if start == len(plain):
            raise DataError(
                f"{where}: {mark[0]} at character {mark.start()} closes or encloses nothing; expected pairs "
                f"of marks such as <e{number}>Ada</e{number}>"
            )
        places.setdefault(number, []).append((start, len(plain)))
    if opened:
        raise DataError(f"{where}: <e{min(opened)}> is not closed; expected </e{min(opened)}> after it")
    return plain + text[at:], [sorted(places[number]) for number in sorted(places)]


def mention_tokens(tokens: Sequence[Token], places: Iterable[Place], where: str) -> tuple[Place, ...]:
    """Return the spans of tokens that overlap these places of the text.

    Raises:
        DataError: no token does.
    """
    found = set()
    for start, end in places:
        inside = [number for number, token in enumerate(tokens) if token.start < end and token.end > start]
        if not inside:
            raise DataError(
                f"{where}: no token is at the characters {start} to {end} of an entity; expected a place "
                "inside the text, with more than white space"
            )
        found.add((inside[0], inside[-1] + 1))
    return tuple(sorted(found))


def places_of(name: str, text: str, *, without: str) -> list[Place]:
    """Return where a name occurs in a text, but not inside of another, longer name if it can be helped.

    Example:
        >>> places_of("ICBC", "ICBC Asia, a part of ICBC", without="ICBC Asia")
        [(21, 25)]
    """
    found = [match.span() for match in re.finditer(re.escape(name), text)]
    if len(without) <= len(name):
        return found
    longer = [match.span() for match in re.finditer(re.escape(without), text)]
    outside = [(start, end) for start, end in found if not any(a <= start and end <= b for a, b in longer)]
    return outside or found


def checked_pairs(entities: Sequence[MarkedEntity], pairs: Iterable[EntityPair], where: str) -> None:
    """Raise a DataError if a pair is of no two entities."""
    for pair in pairs:
        if pair.head == pair.tail or not {pair.head, pair.tail} <= set(range(len(entities))):
            raise DataError(
                f"{where}: the pair {shown((pair.head, pair.tail))} is not of two different entities"
            )


def sentence_starts(texts: Sequence[Sequence[str]]) -> list[int]:
    """Return where each sentence starts among the tokens of all."""
    return list(accumulate((len(text) for text in texts), initial=0))[:-1]
