"""Scores of labels: the accuracy, or micro-F1 where a text may have several."""

from collections.abc import Iterable, Sequence

from elmokit.tasks.classifier.data import LabelledText
from elmokit.tasks.classifier.head import PredictedLabels
from elmokit.tasks.core import Counted, Items, count_items


def count_labels(examples: Sequence[LabelledText], outputs: Sequence[PredictedLabels]) -> Counted:
    """Count the labels of texts."""
    return count_items([_items(one.labels) for one in examples], [_items(one.labels) for one in outputs])


def label_pairs(
    examples: Sequence[LabelledText], outputs: Sequence[PredictedLabels]
) -> list[tuple[str, str]]:
    """Return the true and the predicted label of each text, which has one of each."""
    return [(e.labels[0], o.labels[0]) for e, o in zip(examples, outputs, strict=True)]


def _items(labels: Iterable[str]) -> Items:
    return {(0, label) for label in labels}
