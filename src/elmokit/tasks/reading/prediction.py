"""Questions to answer, and the answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elmokit.errors import ConfigError, DataError
from elmokit.tasks.core import TextInput, plain_data
from elmokit.tasks.reading.data import AskedPassage, Passage, Span
from elmokit.tasks.reading.head import FoundAnswers
from elmokit.text import Run, Token, Tokenizer, tokens_from_list

_PASSAGE = ("passage", "context")


def read_question(given: Any, tokenize: Tokenizer) -> AskedPassage:  # noqa: ANN401 (see below)
    """Tokenise a question and its passage.

    Args:
        given: the two, each a string or a list of tokens; a mapping with "question" and "passage" (or
            "context"); or a string with a tab between them, or an empty one.
        tokenize: for strings.

    Raises:
        DataError: a string has no tab, or several.
        ConfigError: it is none of these.
    """
    texts: Any = given
    if isinstance(given, str):
        texts = given.split("\t") if given.strip() else ("", "")
        if len(texts) != 2:
            raise DataError(f"expected a question and a passage with a tab between, found {given!r:.60}")
    elif isinstance(given, Mapping):
        texts = [given[name] for name in ("question", *_PASSAGE) if name in given]
    if not isinstance(texts, Sequence) or len(texts) != 2:
        raise ConfigError(
            f"expected a question and its passage, such as (question, passage), found {given!r:.60}; for "
            "several questions pass a list of them"
        )
    asked, passage = (TextInput.read(text, tokenize) for text in texts)
    return AskedPassage(tuple(asked.texts[0]), Passage(passage.text, tuple(passage.tokens)), id=asked.text)


@dataclass(frozen=True)
class AnswerSpan:
    """A part of the passage, `passage[start:end]`, that may be the answer."""

    text: str
    start: int
    end: int
    probability: float


@dataclass(frozen=True)
class ReadingPrediction:
    """A question with its answer.

    Attributes:
        question: as given.
        passage: as given.
        answer: the most probable one; None if it is more probable that the passage does not tell.
        candidates: the most probable answers, best first.
        no_answer: the probability that the passage does not tell; None if the model was trained with
            questions that all have an answer.
    """

    question: str
    passage: str
    answer: AnswerSpan | None
    candidates: list[AnswerSpan]
    no_answer: float | None

    def __str__(self) -> str:
        """Return a line for people: the answer with its probability, and the question."""
        said = f"{self.answer.text} ({self.answer.probability:.2f})" if self.answer else "–"
        if self.answer is None and self.no_answer is not None:
            said = f"no answer ({self.no_answer:.2f})"
        return f"{said}\t{self.question}" if self.question else ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, with probabilities rounded to four places."""
        return plain_data(self)


def present_answers(item: AskedPassage, output: FoundAnswers) -> ReadingPrediction:
    """Return the answers with their places in the passage."""
    tokens = item.passage.tokens
    candidates = [
        AnswerSpan(item.passage.text_of(span), tokens[span[0]].start, tokens[span[1]].end, probability)
        for span, probability in output.spans
    ]
    answer = candidates[0] if output.best is not None else None
    return ReadingPrediction(item.id, item.passage.text, answer, candidates, output.none)


def question_text(item: AskedPassage) -> TextInput:
    """Return the question with the places of its tokens; as tokens joined by blanks if it has others."""
    tokens, end = [], 0
    for word in item.question:
        start = item.id.find(word, end)
        if start < 0:
            return TextInput(" ".join(item.question), tokens_from_list(item.question))
        end = start + len(word)
        tokens.append(Token(word, start, end))
    return TextInput(item.id, tokens)


def row_run(item: AskedPassage, span: Span) -> Run:
    """Return where a span of the passage is first read whole, among the tokens of all `texts`."""
    row = len(item.question)
    for begin, end in item.windows:
        if begin <= span[0] and span[1] < end:
            return (row + span[0] - begin, row + span[1] - begin + 1)
        row += end - begin
    return (0, row)  # it is longer than a window, or lies across the edge of one
