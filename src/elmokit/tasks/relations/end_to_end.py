"""How well a tagger and a model of relations do together, where entities have to be found first."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmokit.tasks.core import Items, Scores, count_items, scores_from_counts
from elmokit.tasks.relations.data import RelationText, split_label
from elmokit.tasks.relations.prediction import RelationsPrediction
from elmokit.tasks.tagger import Tagger

if TYPE_CHECKING:
    from elmokit.tasks.relations import RelationModel

_Span = tuple[int, int]


def evaluate_end_to_end(
    relations: "RelationModel",
    tagger: Tagger,
    path: str | Path,
    *,
    format: str | None = None,
    rename: Mapping[str, str] | None = None,
) -> Scores:
    """Find the entities of labelled texts and the relations between them, and compare both with the labels.

    An entity is right if its first and last word and its kind are. A relation is right if its name, its
    direction and both of its entities are; "boundaries_f1" does not ask for the kinds of the entities.

    Args:
        relations: the model of relations.
        tagger: the model that finds entities.
        path: texts of one sentence, with their entities.
        format: see `evaluate`.
        rename: the tagger's labels by those of the data.

    Returns:
        Scores whose main one, "f1", is that of the relations.

    Raises:
        DataError: the file cannot be used.
    """
    formats = relations.task.formats
    tokenize = formats.tokenizer(relations.tokenizer)
    examples: list[RelationText] = formats.read(Path(path), tokenize=tokenize, format=format)
    tagged = tagger.predict([example.tokens for example in examples])
    names = rename or {}
    given = [
        {
            "tokens": example.tokens,
            "entities": [replace(span, label=names.get(span.label, span.label)) for span in found.spans],
        }
        for example, found in zip(examples, tagged, strict=True)
    ]
    return score_end_to_end(
        examples, relations.predict(given), no_relation=getattr(relations.task, "no_relation", "")
    )


def score_end_to_end(
    examples: Sequence[RelationText], found: Sequence[RelationsPrediction], *, no_relation: str
) -> Scores:
    """Compare entities and relations that were found with those that are true; see `evaluate_end_to_end`."""
    true = [_true(example, no_relation) for example in examples]
    said = [_found(one) for one in found]
    entities = count_items([_entities(one) for one, _ in true], [_entities(one) for one, _ in said])
    counted = count_items([_relations(*one) for one in true], [_relations(*one) for one in said])
    bounds = count_items(
        [_relations(*one, kinds=False) for one in true], [_relations(*one, kinds=False) for one in said]
    )
    precision, recall, _ = counted.total()
    others = {
        "precision": precision,
        "recall": recall,
        "boundaries_f1": bounds.total()[2],
        "entity_f1": entities.total()[2],
    }
    return scores_from_counts({"f1": counted}, others=others)


_Entities = list[tuple[_Span, str]]
_Related = list[tuple[int, int, str]]


def _true(example: RelationText, no_relation: str) -> tuple[_Entities, _Related]:
    entities = [(one.mentions[0], one.kind) for one in example.entities]
    related = []
    for pair in example.pairs:
        if pair.label != no_relation:
            name, reverse = split_label(pair.label)
            related.append((*((pair.tail, pair.head) if reverse else (pair.head, pair.tail)), name))
    return entities, related


def _found(prediction: RelationsPrediction) -> tuple[_Entities, _Related]:
    starts = {start: place for place, (start, _) in enumerate(prediction.offsets)}
    ends = {end: place + 1 for place, (_, end) in enumerate(prediction.offsets)}
    entities = [((starts[one.start], ends[one.end]), one.label) for one in prediction.entities]
    return entities, [(one.head, one.tail, one.label) for one in prediction.relations]


def _entities(entities: _Entities) -> Items:
    return set(entities)


def _relations(entities: _Entities, related: Iterable[tuple[int, int, str]], *, kinds: bool = True) -> Items:
    def shown(number: int) -> Any:  # noqa: ANN401 (a span, with its kind or without)
        return entities[number] if kinds else entities[number][0]

    return {((shown(head), shown(tail)), name) for head, tail, name in related}
