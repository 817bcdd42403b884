"""Reading comprehension: the part of a passage that answers a question."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from elmokit.errors import DataError
from elmokit.tasks.core import Decision, Scores, TaskModel, TextInput, choose, refuse_at
from elmokit.tasks.reading.data import FORMATS, AskedPassage, Passage, windows_of
from elmokit.tasks.reading.head import FoundAnswers, ReadingHead, ReadingHeadSettings, ReadingSettings
from elmokit.tasks.reading.prediction import (
    AnswerSpan,
    ReadingPrediction,
    present_answers,
    question_text,
    read_question,
    row_run,
)
from elmokit.tasks.reading.scores import answer_text, score_answers
from elmokit.text import Run, Tokenizer, count_scripts

__all__ = [
    "AnswerSpan", "AskedPassage", "FoundAnswers", "Passage", "ReadingHead", "ReadingHeadSettings",
    "ReadingModel", "ReadingPrediction", "ReadingSettings", "ReadingTask", "answer_text", "score_answers",
    "windows_of",
]  # fmt: skip

_NO_ANSWER = "(no answer)"
_SHORT_ENOUGH = 0.99  # of the training answers are not longer than the longest answer that is returned


@dataclass(frozen=True)
class ReadingTask:
    """Questions about passages; see `Task`.

    Attributes:
        settings: of encoders, head and training.
        longest: tokens of the longest answer that is returned.
        no_answer: whether the training data have questions that the passage does not answer.
        chinese: whether answers are compared by CMRC's rules; else by SQuAD's.
    """

    name = "reading"
    formats = FORMATS
    settings_type = ReadingSettings

    settings: ReadingSettings
    longest: int = 1
    no_answer: bool = False
    chinese: bool = False

    @classmethod
    def fit(
        cls, settings: ReadingSettings, examples: Sequence[AskedPassage]
    ) -> tuple["ReadingTask", list[AskedPassage]]:
        """Find out how long answers are, and whether some questions have none."""
        lengths = [last - first + 1 for example in examples for first, last in example.spans]
        if not lengths:
            raise DataError(f"{examples[0].where}: neither this nor any other question has an answer")
        longest = int(np.quantile(lengths, _SHORT_ENOUGH, method="higher"))
        scripts = count_scripts("".join(example.passage.text for example in examples[:100]))
        chinese = scripts["Chinese"] > sum(scripts.values()) / 2
        no_answer = any(not example.answers for example in examples)
        task = cls(settings, longest, no_answer, chinese)
        return task, task.prepare(examples, allow_unseen=False)

    def prepare(self, examples: Sequence[AskedPassage], *, allow_unseen: bool) -> list[AskedPassage]:
        """Check that the answers are there, and cut the passages into windows."""
        for example in () if allow_unseen else examples:
            if example.answers and not example.spans:
                raise DataError(
                    f"{example.where}: the answer {example.answers[0]!r:.60} is not in the passage; correct "
                    "it, or, if it is no training data, count it as an error with allow_unseen=True"
                )
            if not example.answers and not self.no_answer:
                raise DataError(
                    f"{example.where}: the question has no answer, but all of the training data have one; "
                    "remove it, or count it as an error with allow_unseen=True"
                )
        return [self._with_windows(example) for example in examples]

    def make_head(self, dim: int, examples: Sequence[AskedPassage] = ()) -> ReadingHead:
        """Build BiDAF with self-attention."""
        head = self.settings.head
        return ReadingHead(dim, settings=head, longest=self.longest, no_answer=self.no_answer)

    def score(
        self, examples: Sequence[AskedPassage], outputs: Sequence[FoundAnswers], *, strict: bool = False
    ) -> Scores:
        """Return F1 and exact match."""
        return score_answers(examples, outputs, chinese=self.chinese)

    def describe(self, example: AskedPassage, output: FoundAnswers) -> tuple[str, str]:
        """Return the true answer, and the one that was found; the same if it is one of the true ones."""
        found = answer_text(example, output) or _NO_ANSWER
        answers = example.answers or (_NO_ANSWER,)
        return (found, found) if found in answers else (" | ".join(dict.fromkeys(answers)), found)

    def read_input(self, given: Any, tokenize: Tokenizer) -> AskedPassage:  # noqa: ANN401 (see `read_question`)
        """Return a question and its passage, in windows."""
        return self._with_windows(read_question(given, tokenize))

    def present(self, item: AskedPassage, output: FoundAnswers) -> ReadingPrediction:
        """Return the answers with their places in the passage."""
        return present_answers(item, output)

    def parts(self, item: AskedPassage) -> list[TextInput]:
        """Return the question and the passage, of which some tokens are read in two windows."""
        tokens = [token for start, end in item.windows for token in item.passage.tokens[start:end]]
        return [question_text(item), TextInput(item.passage.text, tokens)]

    def decisions(
        self, item: AskedPassage, output: FoundAnswers, *, label: str | None, at: Run | None
    ) -> list[Decision]:
        """Return the answer, or the candidate that is asked for by its text."""
        refuse_at(at, "an answer is asked for by its text, as a label")
        spans = [span for span, _ in output.spans]
        found = [Decision(item.passage.text_of(span), span, row_run(item, span)) for span in spans]
        found += [Decision(_NO_ANSWER, None)] if output.none is not None else []
        best = _NO_ANSWER if output.best is None else item.passage.text_of(output.best)
        return choose(found, label or best, None)[:1]

    def labelled(self, example: AskedPassage) -> list[tuple[str, Run | None]]:
        """Return the answers with their places."""
        return [(example.passage.text_of(span), row_run(example, span)) for span in example.spans]

    def _with_windows(self, item: AskedPassage) -> AskedPassage:
        return replace(item, windows=windows_of(len(item.passage.tokens), self.settings.head.window))


class ReadingModel(TaskModel[AskedPassage, FoundAnswers, ReadingPrediction]):
    """A model that answers questions about passages.

    Example:
        >>> model = ReadingModel.load("squad")                                          # doctest: +SKIP
        >>> model.predict([("Who was she?", "Ada Lovelace was a writer.")])[0].answer.text   # doctest: +SKIP
        'a writer'
    """

    task_type = ReadingTask


MODEL = ReadingModel
