"""Dialogues: every turn but the first is a reply to the turns before it.

dialogues  a dialogue on each line, its turns separated by tabs
jsonl      one object per line with its turns as "turns", a list of strings
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from elmokit.base import shown
from elmokit.errors import DataError
from elmokit.tasks.core import Formats, Tokenize, json_objects, numbered_lines, string_list
from elmokit.tasks.seq2seq import TextPair

_LEAST_TURNS = 2


def _replies(dialogues: Iterable[tuple[str, Iterable[str]]], tokenize: Tokenize) -> Iterator[TextPair]:
    for where, given in dialogues:
        turns = [" ".join(turn.split()) for turn in given]
        if len(turns) < _LEAST_TURNS:
            raise DataError(
                f"{where}: found a dialogue of one turn, {shown(''.join(turns))}, expected two or more with "
                "tabs between them; complete the line or remove it"
            )
        if not all(turns):
            number = 1 + turns.index("")
            raise DataError(f"{where}: turn {number} is empty, expected a text; remove it from the dialogue")
        tokens = [tuple(tokenize(turn)) for turn in turns[:-1]]
        for place in range(1, len(turns)):
            yield TextPair(tuple(tokens[:place]), turns[place], f"{where}, turn {place + 1}")


def _read_lines(path: Path, tokenize: Tokenize) -> Iterator[TextPair]:
    return _replies(((where, line.split("\t")) for where, line in numbered_lines(path)), tokenize)


def _read_jsonl(path: Path, tokenize: Tokenize) -> Iterator[TextPair]:
    def dialogues() -> Iterator[tuple[str, Iterable[str]]]:
        for where, data in json_objects(path):
            if "turns" not in data:
                raise DataError(f'{where}: expected an object with a list as "turns", found {shown(data)}')
            yield where, string_list(data, "turns", where)

    return _replies(dialogues(), tokenize)


FORMATS = Formats[TextPair](
    {"dialogues": _read_lines, "jsonl": _read_jsonl},
    {".tsv": "dialogues", ".txt": "dialogues", ".jsonl": "jsonl"},
)
