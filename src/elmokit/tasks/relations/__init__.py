"""Relations: what two entities of a text have to do with each other."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Any

from elmokit.errors import ConfigError, DataError
from elmokit.tasks.core import Scores, TaskModel, by_frequency, check_labels, class_weights, warn_of_labels
from elmokit.tasks.relations.data import (
    UNKNOWN,
    EntityPair,
    MarkedEntity,
    RelationText,
    checked_pairs,
    split_label,
)
from elmokit.tasks.relations.end_to_end import evaluate_end_to_end, score_end_to_end
from elmokit.tasks.relations.head import (
    PredictedPair,
    RelationsHead,
    RelationsHeadSettings,
    RelationsSettings,
    label_counts,
)
from elmokit.tasks.relations.prediction import (
    FoundRelation,
    RelatedEntity,
    RelationsInput,
    RelationsPrediction,
    present_relations,
)
from elmokit.tasks.relations.relation_files import FORMATS
from elmokit.tasks.relations.scores import score_relations
from elmokit.text import Tokenizer

__all__ = [
    "EntityPair", "FoundRelation", "MarkedEntity", "PredictedPair", "RelatedEntity", "RelationModel",
    "RelationText", "RelationsHead", "RelationsHeadSettings", "RelationsInput", "RelationsPrediction",
    "RelationsSettings", "RelationsTask", "evaluate_end_to_end", "score_end_to_end", "score_relations",
]  # fmt: skip

_NAMES_OF_NONE = ("none", "other", "unknown", "no_relation", "na", "n")
_RARE = 0.02  # the share of pairs up to which an order counts as a slip of the annotation
_TO = " > "  # between two kinds


@dataclass(frozen=True)
class RelationsTask:
    """Relations with a known label set; see `Task`.

    Attributes:
        settings: of encoders, head and training.
        labels: of pairs, the most frequent first.
        no_relation: the label of pairs without a relation; "" if every pair has one.
        kinds: of entities, the most frequent first; before them "" for those that are not known.
        related: pairs of kinds between which there are relations, as "Person > Place".
        both_orders: whether the first entity of a pair may come after the second in the text.
    """

    name = "relations"
    formats = FORMATS
    settings_type = RelationsSettings

    settings: RelationsSettings
    labels: tuple[str, ...] = ()
    no_relation: str = ""
    kinds: tuple[str, ...] = (UNKNOWN,)
    related: tuple[str, ...] = field(default_factory=tuple)  # unlike label sets, of any length
    both_orders: bool = False

    @classmethod
    def fit(
        cls, settings: RelationsSettings, examples: Sequence[RelationText]
    ) -> tuple["RelationsTask", list[RelationText]]:
        """Find the labels of the training data, and which pairs of entities have one."""
        labels = by_frequency(label_counts(examples))
        if not labels:
            raise DataError(f"{examples[0].where}: no text has a pair of entities; nothing can be learnt")
        warn_of_labels(label_counts(examples), examples[0].where)
        task = cls(settings, labels, _label_of_none(settings.head.no_relation, labels))
        kinds = by_frequency([one.kind for one in example.entities if one.kind] for example in examples)
        kinds = (UNKNOWN, *kinds)
        related: set[str] = set()
        behind = pairs = 0
        for example in examples:
            for pair in example.pairs:
                head, tail = example.entities[pair.head], example.entities[pair.tail]
                pairs += 1
                behind += head.mentions[0] > tail.mentions[0]
                if pair.label != task.no_relation:
                    related.add(f"{head.kind}{_TO}{tail.kind}")
        task = replace(task, kinds=kinds, related=tuple(sorted(related)), both_orders=behind > _RARE * pairs)
        return task, task.prepare(examples, allow_unseen=True)

    def prepare(self, examples: Sequence[RelationText], *, allow_unseen: bool) -> list[RelationText]:
        """Check pairs and labels."""
        for example in examples:
            checked_pairs(example.entities, example.pairs, example.where)
        if not allow_unseen:
            labels = zip((example.where for example in examples), label_counts(examples), strict=True)
            check_labels(labels, self.labels)
        return list(examples)

    def make_head(self, dim: int, examples: Sequence[RelationText] = ()) -> RelationsHead:
        """Build the head that reads the words around each pair."""
        weighted = examples if self.settings.training.class_weights else ()
        weights = class_weights(label_counts(weighted), self.labels)
        return RelationsHead(dim, self.labels, self.kinds, self.settings.head, weights)

    def score(
        self,
        examples: Sequence[RelationText],
        outputs: Sequence[list[PredictedPair]],
        *,
        strict: bool = False,
    ) -> Scores:
        """Return micro-F1, the macro-F1 of SemEval-2010, and accuracy; `strict` makes no difference."""
        names = {split_label(label)[0] for label in self.labels if label != self.no_relation}
        main = self.settings.head.main
        return score_relations(examples, outputs, relations=names, no_relation=self.no_relation, main=main)

    def describe(self, example: RelationText, output: list[PredictedPair]) -> tuple[str, str]:
        """Return the true and the predicted labels of all pairs that have a relation."""
        return self._in_words(example, example.pairs), self._in_words(example, output)

    def read_input(self, given: Any, tokenize: Tokenizer) -> RelationsInput:  # noqa: ANN401 (see RelationsInput)
        """Read a text with its entities; asked for are all pairs such as those of the training data."""
        read = RelationsInput.read(given, tokenize)
        return replace(read, pairs=tuple(self._candidates(read.entities)))

    def present(self, item: RelationsInput, output: list[PredictedPair]) -> RelationsPrediction:
        """Return the relations with the places of their entities."""
        return present_relations(item, output, self.no_relation)

    def _candidates(self, entities: Sequence[MarkedEntity]) -> list[EntityPair]:
        pairs = []
        for (i, head), (j, tail) in permutations(enumerate(entities), 2):
            known = {head.kind, tail.kind} <= set(self.kinds) - {UNKNOWN}
            in_order = head.mentions[0] <= tail.mentions[0]
            if (in_order or self.both_orders) and (
                not known or f"{head.kind}{_TO}{tail.kind}" in self.related
            ):
                pairs.append(EntityPair(i, j))
        return pairs

    def _in_words(self, example: RelationText, pairs: Sequence[EntityPair | PredictedPair]) -> str:
        tokens = example.tokens
        words = []
        for pair in pairs:
            if pair.label != self.no_relation or len(pairs) == 1:
                ends = (example.entities[number].mentions[0] for number in (pair.head, pair.tail))
                names = (f"{' '.join(tokens[start:end])}@{start}" for start, end in ends)
                words.append(f"{pair.label}: {', '.join(names)}")
        return " | ".join(words)


def _label_of_none(given: str | None, labels: Sequence[str]) -> str:
    """Return the label of pairs without a relation.

    Raises:
        ConfigError: the one that was given is not among the labels.
    """
    if given is not None and given not in labels:
        raise ConfigError(
            f"head.no_relation is {given!r}, which is not among the labels {', '.join(labels):.200}"
        )
    named = next((label for label in labels if label.lower() in _NAMES_OF_NONE), "")
    return named if given is None else given


class RelationModel(TaskModel[RelationText, list[PredictedPair], RelationsPrediction]):
    """A model that finds the relations between entities.

    Example:
        >>> text = "<e1>Ada Lovelace</e1> lived in <e2>London</e2>."
        >>> print(RelationModel.load("relations").predict(text))                        # doctest: +SKIP
        Ada Lovelace --Live_In--> London  (0.97)
    """

    task_type = RelationsTask


MODEL = RelationModel
