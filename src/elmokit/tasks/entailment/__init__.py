"""Pairs of texts: does the first entail the second, do both say the same, how similar are they?"""

from collections.abc import Sequence
from dataclasses import dataclass

from elmokit.errors import DataError
from elmokit.tasks.core import (
    Decision,
    Scores,
    TaskModel,
    TextInput,
    by_frequency,
    check_labels,
    choose,
    class_weights,
    refuse_at,
    warn_of_labels,
)
from elmokit.tasks.entailment.data import FORMATS, LabelledPair, scores_of
from elmokit.tasks.entailment.head import (
    EntailmentHead,
    EntailmentHeadSettings,
    EntailmentSettings,
    PairOutput,
)
from elmokit.tasks.entailment.prediction import EntailmentPrediction, PairInput
from elmokit.tasks.entailment.scores import pearson, score_labels, score_numbers, spearman
from elmokit.text import Run

__all__ = [
    "EntailmentHead", "EntailmentHeadSettings", "EntailmentModel", "EntailmentPrediction",
    "EntailmentSettings", "EntailmentTask", "LabelledPair", "PairInput", "PairOutput", "pearson",
    "score_labels", "score_numbers", "scores_of", "spearman",
]  # fmt: skip

_CLOSE = 0.1  # share of the scores' range within which a prediction counts as no error


@dataclass(frozen=True)
class EntailmentTask:
    """Pairs with a known label set, or with scores between two bounds; see `Task`.

    Attributes:
        settings: of encoders, head and training.
        labels: the most frequent first; with `head.regression` the one word "score".
        lowest: the least score of the training data.
        highest: the greatest.
    """

    name = "entailment"
    formats = FORMATS
    read_input = staticmethod(PairInput.read)
    settings_type = EntailmentSettings

    settings: EntailmentSettings
    labels: tuple[str, ...] = ()
    lowest: float = 0.0
    highest: float = 1.0

    @classmethod
    def fit(
        cls, settings: EntailmentSettings, examples: Sequence[LabelledPair]
    ) -> tuple["EntailmentTask", list[LabelledPair]]:
        """Find the labels of the training data, or the range of their scores."""
        if settings.head.regression:
            scores = scores_of(examples)
            if min(scores) == max(scores):
                raise DataError(
                    f"{examples[0].where}: all scores are {scores[0]:g}, so there is nothing to learn"
                )
            return cls(settings, ("score",), min(scores), max(scores)), list(examples)
        names = [(example.label,) for example in examples]
        hint = "; if these are numbers to predict, set head.regression=true"
        warn_of_labels(names, examples[0].where, hint=hint)
        return cls(settings, by_frequency(names)), list(examples)

    def prepare(self, examples: Sequence[LabelledPair], *, allow_unseen: bool) -> list[LabelledPair]:
        """Check that no label is new, and that scores are numbers."""
        if self.settings.head.regression:
            scores_of(examples)
        elif not allow_unseen:
            check_labels(((example.where, (example.label,)) for example in examples), self.labels)
        return list(examples)

    def make_head(self, dim: int, examples: Sequence[LabelledPair] = ()) -> EntailmentHead:
        """Build ESIM's attention, comparison and pooling."""
        labels = () if self.settings.head.regression else self.labels
        weighted = examples if self.settings.training.class_weights else ()
        weights = class_weights(((example.label,) for example in weighted), labels) if labels else None
        span = (self.lowest, self.highest)
        return EntailmentHead(dim, labels, span=span, settings=self.settings.head, weights=weights)

    def score(
        self, examples: Sequence[LabelledPair], outputs: Sequence[PairOutput], *, strict: bool = False
    ) -> Scores:
        """Return the accuracy of labels, or the correlation of scores."""
        return (score_numbers if self.settings.head.regression else score_labels)(examples, outputs)

    def describe(self, example: LabelledPair, output: PairOutput) -> tuple[str, str]:
        """Return the true and the predicted label or score; scores that are close count as equal."""
        if output.score is None:
            return example.label, output.label
        far = abs(output.score - float(example.label)) > _CLOSE * (self.highest - self.lowest)
        return example.label, f"{output.score:.2f}" if far else example.label

    def present(self, item: PairInput, output: PairOutput) -> EntailmentPrediction:
        """Return the label beside the texts; a pair without any tokens has none."""
        some = any(item.texts)
        return EntailmentPrediction(
            item.premise.text,
            item.hypothesis.text,
            item.texts[0],
            item.texts[1],
            label=output.label if some and output.score is None else None,
            scores=output.scores if some else {},
            score=output.score if some else None,
            alignment=output.alignment.tolist(),
        )

    def parts(self, item: PairInput) -> list[TextInput]:
        """Return both texts."""
        return [item.premise, item.hypothesis]

    def decisions(
        self, item: PairInput, output: PairOutput, *, label: str | None, at: Run | None
    ) -> list[Decision]:
        """Return the label that was chosen or is asked for, or the score."""
        refuse_at(at, "the label is that of the whole pair")
        if output.score is not None:
            return choose([Decision("score", 0, unit="score")], label, None)
        return choose(
            [Decision(one, key) for key, one in enumerate(self.labels)], label or output.label, None
        )

    def labelled(self, example: LabelledPair) -> list[tuple[str, Run | None]]:
        """Return the label, which is that of the whole pair."""
        return [(example.label, None)]


class EntailmentModel(TaskModel[LabelledPair, PairOutput, EntailmentPrediction]):
    """A model that labels pairs of texts.

    Example:
        >>> model = EntailmentModel.load("nli")                                        # doctest: +SKIP
        >>> model.predict([("A man sleeps.", "A person rests.")])[0].label             # doctest: +SKIP
        'entailment'
    """

    task_type = EntailmentTask


MODEL = EntailmentModel
