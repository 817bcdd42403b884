"""Replies: the turns of a dialogue, and what may be said next."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from elmokit.base import bounded
from elmokit.tasks.core import Scores, TaskModel
from elmokit.tasks.reply.data import FORMATS
from elmokit.tasks.reply.scores import distinct, hits, reply_scores
from elmokit.tasks.seq2seq import (
    Seq2SeqHeadSettings,
    Seq2SeqSettings,
    SourceInput,
    TextPair,
    WritingTask,
    WrittenPrediction,
    WrittenText,
    turns_of,
)
from elmokit.text import Tokenizer

__all__ = [
    "ReplyHeadSettings", "ReplyModel", "ReplySettings", "ReplyTask", "distinct", "hits", "reply_scores",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ReplyHeadSettings(Seq2SeqHeadSettings):
    """The settings of the head that writes replies.

    Attributes:
        turns: how many turns before the reply are read.
    """

    turns: int = bounded(2, least=1, most=1000)
    no_repeat: int = bounded(3, least=0)


@dataclass(frozen=True, kw_only=True)
class ReplySettings(Seq2SeqSettings):
    """All settings for replies."""

    head: ReplyHeadSettings = field(default_factory=ReplyHeadSettings)


@dataclass(frozen=True)
class ReplyTask(WritingTask):
    """Dialogues; see `WritingTask`."""

    name = "reply"
    formats = FORMATS
    settings_type = ReplySettings

    @property
    def turns(self) -> int:
        """How many turns are read."""
        turns: int = self.settings.head.turns
        return turns

    def score(
        self, examples: Sequence[TextPair], outputs: Sequence[WrittenText], *, strict: bool = False
    ) -> Scores:
        """Return chrF, BLEU, how varied the replies are, and how near to the true ones."""
        texts = [output.text for output in outputs]
        return reply_scores(examples, texts, words=self.words, blanks=self.blanks)

    def read_input(self, given: Any, tokenize: Tokenizer) -> SourceInput:  # noqa: ANN401 (see `SourceInput`)
        """Return the last turns of a dialogue; a string has tabs between them."""
        return super().read_input(turns_of(given), tokenize)


class ReplyModel(TaskModel[TextPair, WrittenText, WrittenPrediction]):
    r"""A model that replies.

    Example:
        >>> model = ReplyModel.load("talk")                                             # doctest: +SKIP
        >>> model.predict("Hello !\tHello ! How are you ?").text                        # doctest: +SKIP
        "I'm fine , thank you ."
    """

    task_type = ReplyTask


MODEL = ReplyModel
