"""Classification: one label, or several, for a whole text."""

from collections.abc import Sequence
from dataclasses import dataclass

from elmokit.errors import DataError
from elmokit.tasks.classifier.data import FORMATS, LabelledText, expect_one_label, json_labels
from elmokit.tasks.classifier.head import (
    ClassifierHead,
    ClassifierHeadSettings,
    ClassifierSettings,
    PredictedLabels,
)
from elmokit.tasks.classifier.prediction import ClassifierPrediction, labels_text
from elmokit.tasks.classifier.scores import count_labels, label_pairs
from elmokit.tasks.core import (
    Decision,
    Scores,
    TaskModel,
    TextInput,
    TokenPooling,
    by_frequency,
    check_labels,
    choose,
    class_weights,
    refuse_at,
    scores_from_counts,
    warn_of_labels,
)
from elmokit.text import Run

__all__ = [
    "Classifier", "ClassifierHead", "ClassifierHeadSettings", "ClassifierPrediction",
    "ClassifierSettings", "ClassifierTask", "LabelledText", "PredictedLabels", "TokenPooling",
    "count_labels", "json_labels", "label_pairs", "labels_text",
]  # fmt: skip


@dataclass(frozen=True)
class ClassifierTask:
    """Classification with a known label set; see `Task`.

    Attributes:
        settings: of encoders, head and training.
        labels: the most frequent first.
    """

    name = "classifier"
    formats = FORMATS
    read_input = staticmethod(TextInput.read)
    settings_type = ClassifierSettings

    settings: ClassifierSettings
    labels: tuple[str, ...] = ()

    @classmethod
    def fit(
        cls, settings: ClassifierSettings, examples: Sequence[LabelledText]
    ) -> tuple["ClassifierTask", list[LabelledText]]:
        """Find the labels of the training data."""
        task = cls(settings, by_frequency(example.labels for example in examples))
        if not task.labels:
            raise DataError(f"{examples[0].where}: neither this nor any other training text has a label")
        hint = "; if these are no labels, name the column that has them with label_column=NAME"
        warn_of_labels([example.labels for example in examples], examples[0].where, hint=hint)
        return task, task.prepare(examples, allow_unseen=True)

    def prepare(self, examples: Sequence[LabelledText], *, allow_unseen: bool) -> list[LabelledText]:
        """Check that each text has one label, unless it may have several."""
        if not self.settings.head.multi_label:
            expect_one_label(examples)
        if not allow_unseen:
            check_labels(((example.where, example.labels) for example in examples), self.labels)
        return list(examples)

    def make_head(self, dim: int, examples: Sequence[LabelledText] = ()) -> ClassifierHead:
        """Build a pooling and a linear layer."""
        weighted = examples if self.settings.training.class_weights else ()
        weights = class_weights((example.labels for example in weighted), self.labels)
        head = self.settings.head
        return ClassifierHead(
            dim, self.labels, pooling=head.pooling, multi_label=head.multi_label, weights=weights
        )

    def score(
        self, examples: Sequence[LabelledText], outputs: Sequence[PredictedLabels], *, strict: bool = False
    ) -> Scores:
        """Return the accuracy, or micro-F1 if a text may have several labels."""
        counted = count_labels(examples, outputs)
        if self.settings.head.multi_label:
            return scores_from_counts({"micro_f1": counted})
        return scores_from_counts({"accuracy": counted}, pairs=label_pairs(examples, outputs))

    def describe(self, example: LabelledText, output: PredictedLabels) -> tuple[str, str]:
        """Return the true and the predicted labels."""
        return " | ".join(sorted(example.labels)), " | ".join(sorted(output.labels))

    def present(self, item: TextInput, output: PredictedLabels) -> ClassifierPrediction:
        """Return the labels beside the text; a text without tokens has none."""
        output = output if item.tokens else PredictedLabels([], {})
        return ClassifierPrediction(**item.fields(), labels=output.labels, scores=output.scores)

    def parts(self, item: TextInput) -> list[TextInput]:
        """Return the text."""
        return [item]

    def decisions(
        self, item: TextInput, output: PredictedLabels, *, label: str | None, at: Run | None
    ) -> list[Decision]:
        """Return the labels that were chosen, or the one that is asked for."""
        refuse_at(at, "the label is that of the whole text")
        every = [Decision(one, key) for key, one in enumerate(self.labels)]
        return choose(every, label, None) if label else [one for one in every if one.label in output.labels]

    def labelled(self, example: LabelledText) -> list[tuple[str, Run | None]]:
        """Return the labels, which are those of the whole text."""
        return [(label, None) for label in example.labels]


class Classifier(TaskModel[LabelledText, PredictedLabels, ClassifierPrediction]):
    """A model that labels whole texts.

    Example:
        >>> Classifier.load("sentiment").predict("A lovely film.").label               # doctest: +SKIP
        'positive'
    """

    task_type = ClassifierTask


MODEL = Classifier
