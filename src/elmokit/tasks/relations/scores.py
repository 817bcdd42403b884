"""Scores of relations: micro-F1, and the macro-F1 of SemEval-2010 task 8 (Hendrickx et al. 2010).

Pairs without a relation do not count as items: neither if that is true nor if it is predicted. A relation is
right if its name and its direction are. For the macro-F1 both directions of a relation are one class, and the
mean is over all relations of the training data, those that are never predicted included.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

from elmokit.tasks.core import Items, Scores, count_items, scores_from_counts
from elmokit.tasks.relations.data import EntityPair, RelationText, split_label
from elmokit.tasks.relations.head import PredictedPair


def score_relations(
    examples: Sequence[RelationText],
    outputs: Sequence[Sequence[PredictedPair]],
    *,
    relations: Iterable[str],
    no_relation: str,
    main: Literal["f1", "macro_f1", "accuracy"] = "f1",
) -> Scores:
    """Compare the labels of pairs.

    Args:
        examples: with the true ones.
        outputs: with those that were predicted, for the same pairs.
        relations: the names of the relations that the macro-F1 is the mean over, without their directions.
        no_relation: the label of pairs without a relation.
        main: the main score.
    """
    gold = [_items(example.pairs, no_relation) for example in examples]
    counted = count_items(gold, [_items(output, no_relation) for output in outputs])
    labels = _labels(examples, outputs)
    precision, recall, f1 = counted.total()
    scores = scores_from_counts(
        {"f1": counted}, pairs=[(true, said) for pairs in labels for true, said in pairs]
    )
    of_class = {one.label: one.f1 for one in scores.classes}
    names = set(relations) | of_class.keys()
    values = {
        "f1": f1,
        "macro_f1": sum(of_class.values()) / max(1, len(names)),
        "accuracy": _accuracy(labels),
        "precision": precision,
        "recall": recall,
    }
    ordered = {main: values[main]} | values
    return replace(scores, main=main, values=ordered, interval=scores.interval if main == "f1" else None)


def _items(pairs: Iterable[EntityPair | PredictedPair], no_relation: str) -> Items:
    items: Items = set()
    for pair in pairs:
        if pair.label != no_relation:
            name, reverse = split_label(pair.label)
            items.add(((pair.head, pair.tail, reverse), name))
    return items


def _labels(
    examples: Sequence[RelationText], outputs: Sequence[Sequence[PredictedPair]]
) -> list[list[tuple[str, str]]]:
    """Return for each example the true and the predicted label of each pair."""
    return [
        [(pair.label, found.label) for pair, found in zip(example.pairs, output, strict=True)]
        for example, output in zip(examples, outputs, strict=True)
    ]


def _accuracy(labels: Sequence[Sequence[tuple[str, str]]]) -> float:
    pairs = [pair for one in labels for pair in one]
    return sum(true == said for true, said in pairs) / max(1, len(pairs))
