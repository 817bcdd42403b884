"""Intents with slots: what a text asks for, and with which particulars."""

from collections.abc import Sequence
from dataclasses import dataclass

from elmokit.tasks.classifier import ClassifierHeadSettings, ClassifierSettings, ClassifierTask
from elmokit.tasks.core import Decision, Scores, TaskModel, TextInput
from elmokit.tasks.intent.data import FORMATS, IntentText
from elmokit.tasks.intent.head import IntentHead, IntentSettings, PredictedIntent
from elmokit.tasks.intent.prediction import IntentPrediction
from elmokit.tasks.intent.scores import score_intents
from elmokit.tasks.tagger import Scheme, TaggerTask, tag_fields
from elmokit.text import Run

__all__ = [
    "IntentModel",
    "IntentPrediction",
    "IntentSettings",
    "IntentTask",
]


@dataclass(frozen=True)
class IntentTask:
    """A tagger for the slots and a classifier for the intents, trained together; see `Task`.

    Attributes:
        settings: of encoders, head and training.
        tags: of the slots.
        labels: the intents.
        scheme: the tag scheme of the training data.
    """

    name = "intent"
    formats = FORMATS
    read_input = staticmethod(TextInput.read)
    settings_type = IntentSettings

    settings: IntentSettings
    tags: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    scheme: Scheme = "plain"

    @property
    def slots(self) -> TaggerTask:
        """The tagging part."""
        return TaggerTask(self.settings, self.tags, self.scheme)

    @property
    def intents(self) -> ClassifierTask:
        """The classification part."""
        return ClassifierTask(_classifier_settings(self.settings), self.labels)

    @classmethod
    def fit(
        cls, settings: IntentSettings, examples: Sequence[IntentText]
    ) -> tuple["IntentTask", list[IntentText]]:
        """Find the tags and the intents of the training data."""
        slots, tagged = TaggerTask.fit(settings, [example.slots for example in examples])
        intents, labelled = ClassifierTask.fit(
            _classifier_settings(settings), [example.intent for example in examples]
        )
        return cls(settings, slots.tags, intents.labels, slots.scheme), list(
            map(IntentText, tagged, labelled)
        )

    def prepare(self, examples: Sequence[IntentText], *, allow_unseen: bool) -> list[IntentText]:
        """Prepare slots and intents."""
        tagged = self.slots.prepare([example.slots for example in examples], allow_unseen=allow_unseen)
        labelled = self.intents.prepare([example.intent for example in examples], allow_unseen=allow_unseen)
        return list(map(IntentText, tagged, labelled))

    def make_head(self, dim: int, examples: Sequence[IntentText] = ()) -> IntentHead:
        """Build both heads."""
        slots = self.slots.make_head(dim, [example.slots for example in examples])
        return IntentHead(self.intents.make_head(dim, [example.intent for example in examples]), slots)

    def score(
        self, examples: Sequence[IntentText], outputs: Sequence[PredictedIntent], *, strict: bool = False
    ) -> Scores:
        """Return slot F1, intent accuracy, and their mean."""
        return score_intents(self.slots, examples, outputs, strict=strict)

    def describe(self, example: IntentText, output: PredictedIntent) -> tuple[str, str]:
        """Return the true and the predicted intent with slots."""
        intents = self.intents.describe(example.intent, output.intent)
        slots = self.slots.describe(example.slots, output.slots)
        true, predicted = (" | ".join(filter(None, both)) for both in zip(intents, slots, strict=True))
        return true, predicted

    def present(self, item: TextInput, output: PredictedIntent) -> IntentPrediction:
        """Return the intent, and the slots with their places in the text; a text without tokens has none."""
        fields = tag_fields(item, output.slots, self.slots.learnt_scheme, self.scheme)
        intent = self.intents.present(item, output.intent)
        return IntentPrediction(**fields, labels=intent.labels, scores=intent.scores)

    def parts(self, item: TextInput) -> list[TextInput]:
        """Return the text."""
        return [item]

    def decisions(
        self, item: TextInput, output: PredictedIntent, *, label: str | None, at: Run | None
    ) -> list[Decision]:
        """Return the intent and the slots, or the one that is asked for."""
        if at is not None or (label is not None and label not in self.labels):
            return self.slots.decisions(item, output.slots, label=label, at=at)
        intents = self.intents.decisions(item, output.intent, label=label, at=None)
        return intents if label else intents + self.slots.decisions(item, output.slots, label=None, at=None)

    def labelled(self, example: IntentText) -> list[tuple[str, Run | None]]:
        """Return the intent and the slots."""
        return self.intents.labelled(example.intent) + self.slots.labelled(example.slots)


def _classifier_settings(settings: IntentSettings) -> ClassifierSettings:
    """Return the settings of the classifier among those of an intent model."""
    head = settings.head
    own = ClassifierHeadSettings(
        rnn=head.rnn, rnn_layers=head.rnn_layers, dropout=head.dropout, pooling=head.pooling
    )
    return ClassifierSettings(encoder=settings.encoder, head=own, training=settings.training)


class IntentModel(TaskModel[IntentText, PredictedIntent, IntentPrediction]):
    """A model that finds the intent of a text and its slots.

    Example:
        >>> found = IntentModel.load("intents").predict("play some jazz")               # doctest: +SKIP
        >>> found.label, [(slot.label, slot.text) for slot in found.spans]              # doctest: +SKIP
        ('PlayMusic', [('genre', 'jazz')])
    """

    task_type = IntentTask


MODEL = IntentModel
