"""Translation: a text in one language, the same in another."""

from dataclasses import dataclass

from elmokit.tasks.core import TaskModel
from elmokit.tasks.seq2seq import (
    FORMATS,
    Seq2SeqSettings,
    TextPair,
    WritingTask,
    WrittenPrediction,
    WrittenText,
)

__all__ = ["TranslateTask", "TranslationModel"]


@dataclass(frozen=True)
class TranslateTask(WritingTask):
    """Parallel texts; see `WritingTask`."""

    name = "translate"
    formats = FORMATS
    settings_type = Seq2SeqSettings


class TranslationModel(TaskModel[TextPair, WrittenText, WrittenPrediction]):
    """A model that translates.

    Example:
        >>> model = TranslationModel.load("en-de")                                      # doctest: +SKIP
        >>> model.predict("A man sleeps.").text                                         # doctest: +SKIP
        'Ein Mann schläft.'
    """

    task_type = TranslateTask


MODEL = TranslationModel
