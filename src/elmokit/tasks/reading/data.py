"""Questions about passages, and the format of SQuAD (v1.1 and v2; CMRC 2018 uses it too).

{"data": [{"paragraphs": [{"context": …, "qas": [
{"id": …, "question": …, "answers": [{"text": …, "answer_start": …}], "is_impossible": false}]}]}]}
"""

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from elmokit.base import parse_json
from elmokit.errors import DataError
from elmokit.tasks.core import Formats, Tokenize
from elmokit.text import Token, read_lines

logger = logging.getLogger(__name__)

_CHARACTERS_PER_VALUE = 50  # at least, as SQuAD has
_SEARCHED = 10_000  # characters around the place where an answer should be; SQuAD has shorter passages

Span: TypeAlias = tuple[int, int]  # the first token and the last


@dataclass(frozen=True)
class Passage:
    """A text with its tokens; the questions about it share one."""

    text: str
    tokens: tuple[Token, ...] = field(default=(), repr=False)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The tokens as strings."""
        return tuple(token.text for token in self.tokens)

    def span_of(self, start: int, end: int) -> Span | None:
        """Return the tokens that `text[start:end]` touches, or None if it touches none.

        Example:
            >>> Passage("In 1990s", (Token("In", 0, 2), Token("1990s", 3, 8))).span_of(3, 7)
            (1, 1)
        """
        first = bisect_right(self.tokens, start, key=lambda token: token.end)
        last = bisect_left(self.tokens, end, key=lambda token: token.start) - 1
        return (first, last) if first <= last else None

    def text_of(self, span: Span) -> str:
        """Return the text of some tokens, with what is between them."""
        return self.text[self.tokens[span[0]].start : self.tokens[span[1]].end]


@dataclass(frozen=True)
class AskedPassage:
    """A question about a passage, with the answers that are right; an input to predict has none.

    Attributes:
        question: its tokens.
        passage: where the answer is.
        answers: the texts that are right; none if the passage does not tell.
        spans: their tokens in the passage, each once; answers that are not in the passage have none.
        windows: start and end of the parts of the passage that are read one by one.
        id: of the question.
        where: for messages.
    """

    question: tuple[str, ...]
    passage: Passage
    answers: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    windows: tuple[tuple[int, int], ...] = ()
    id: str = ""
    where: str = field(default="", repr=False)

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The question, and each window of the passage."""
        words = self.passage.words
        return (self.question, *(words[start:end] for start, end in self.windows))


def windows_of(count: int, size: int) -> tuple[tuple[int, int], ...]:
    """Return windows of `size` tokens that overlap by a quarter, and reach from the first token to the last.

    Example:
        >>> windows_of(10, 8), windows_of(3, 8), windows_of(0, 8)
        (((0, 8), (2, 10)), ((0, 3),), ((0, 0),))
    """
    step = size - size // 4
    starts = range(0, max(1, count - size + step), step)
    return tuple((max(0, min(start, count - size)), min(start + size, count)) for start in starts)


def _read_squad(path: Path, tokenize: Tokenize) -> Iterator[AskedPassage]:
    try:
        text = "\n".join(read_lines(path, whole=True))
        found = parse_json(text, values=len(text) // _CHARACTERS_PER_VALUE)
    except ValueError as error:
        raise DataError(f"{path}: is no JSON ({error}); expected a file in the format of SQuAD") from error
    moved = 0
    for where, data in _parts(found, "data", str(path), "article"):
        for place, paragraph in _parts(data, "paragraphs", where, "paragraph"):
            text = _string(paragraph, "context", place)
            passage = Passage(text, tuple(tokenize(text)))
            if not passage.tokens:
                raise DataError(f"{place}: the passage is empty; remove it with its questions")
            for asked, question in _parts(paragraph, "qas", place, "question"):
                example, other = _example(question, passage, tokenize, asked)
                moved += other
                yield example
    if moved:
        logger.warning(
            "%s: %d answers are not where the file says, and are taken where they next occur", path, moved
        )


def _parts(data: Any, key: str, where: str, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:  # noqa: ANN401
    """Yield the objects of a list, each after its place."""
    found = data.get(key) if isinstance(data, Mapping) else None
    if not isinstance(found, list) or not all(isinstance(one, Mapping) for one in found):
        raise DataError(f'{where}: expected a list of objects as "{key}", as SQuAD has, found {found!r:.60}')
    for number, one in enumerate(found, start=1):
        yield f"{where}, {name} {one.get('id', number)}", one


def _string(data: Mapping[str, Any], key: str, where: str) -> str:
    found = data.get(key)
    if not isinstance(found, str):
        raise DataError(f'{where}: expected a string as "{key}", found {found!r:.60}')
    return found


def _example(
    data: Mapping[str, Any], passage: Passage, tokenize: Tokenize, where: str
) -> tuple[AskedPassage, int]:
    """Return a question, and how many of its answers are not where the file says."""
    question = tuple(token.text for token in tokenize(_string(data, "question", where)))
    answers, spans, moved = [], dict[Span, None](), 0
    listed = [] if data.get("is_impossible") is True else _parts(data, "answers", where, "answer")
    for place, answer in listed:
        text, said = _string(answer, "text", place), answer.get("answer_start")
        if not isinstance(said, int) or not text.strip():
            raise DataError(f"{place}: expected a text and its answer_start, found {answer!r:.60}")
        there = said >= 0 and passage.text.startswith(text, said)
        start = said if there else _nearest(passage.text, text, said)
        span = None if start < 0 else passage.span_of(start, start + len(text))
        answers.append(text)
        moved += start not in (said, -1)
        if span is not None:
            spans[span] = None
    found = AskedPassage(
        question, passage, tuple(answers), tuple(spans), id=str(data.get("id", "")), where=where
    )
    return found, moved


def _nearest(text: str, wanted: str, place: int) -> int:
    """Return where `wanted` occurs nearest to a place, or -1."""
    least, most = max(0, place - _SEARCHED), max(0, place + _SEARCHED)
    before = text.rfind(wanted, least, max(0, place) + len(wanted))
    after = text.find(wanted, max(0, place), most)
    return min((at for at in (before, after) if at >= 0), key=lambda at: abs(at - place), default=-1)


FORMATS = Formats[AskedPassage]({"squad": _read_squad}, {".json": "squad"}, with_offsets=True)
