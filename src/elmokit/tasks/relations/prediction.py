"""What a model of relations reads, and what it says about one text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elmokit.base import shown
from elmokit.errors import ConfigError
from elmokit.tasks.core import TextInput, plain_data
from elmokit.tasks.relations.data import (
    EntityPair,
    MarkedEntity,
    Place,
    mention_tokens,
    read_marks,
    split_label,
)
from elmokit.tasks.relations.head import PredictedPair
from elmokit.text import Tokenizer


@dataclass(frozen=True)
class RelationsInput(TextInput):
    """A text with the places of its entities, and the pairs that are asked for."""

    places: tuple[tuple[Place, ...], ...] = ()
    entities: tuple[MarkedEntity, ...] = ()
    pairs: tuple[EntityPair, ...] = ()

    @classmethod
    def read(cls, given: Any, tokenize: Tokenizer) -> "RelationsInput":  # noqa: ANN401 (checked here)
        """Read a text with marks, or {"text" or "tokens": …, "entities": [{"start", "end", "label"}]}.

        Places are characters of the text (of the tokens joined by blanks). An entity may also be any object
        with these attributes, such as those that a tagger finds. A list of tokens has no entities.

        Raises:
            ConfigError: it is none of these.
            DataError: marks do not belong together, or an entity is not in the text.
        """
        if not isinstance(given, Mapping):
            text, marked = read_marks(given, "the text") if isinstance(given, str) else (given, [])
            return cls._of(TextInput.read(text, tokenize), [tuple(one) for one in marked], [""] * len(marked))
        unknown = given.keys() - {"text", "tokens", "entities"}
        if unknown or len(given.keys() & {"text", "tokens"}) != 1:
            raise ConfigError(
                'expected "text" or "tokens", and "entities" with "start", "end" and perhaps "label"; found '
                f"{', '.join(map(str, given)) or 'nothing'}"
            )
        entities = [_place_and_kind(one) for one in given.get("entities", ())]
        read = TextInput.read(given.get("text", given.get("tokens")), tokenize)
        return cls._of(read, [(place,) for place, _ in entities], [kind for _, kind in entities])

    @classmethod
    def _of(
        cls, read: TextInput, places: Sequence[tuple[Place, ...]], kinds: Sequence[str]
    ) -> "RelationsInput":
        entities = tuple(
            MarkedEntity(mention_tokens(read.tokens, one, "the text"), kind)
            for one, kind in zip(places, kinds, strict=True)
        )
        return cls(read.text, read.tokens, tuple(places), entities)


def _place_and_kind(entity: Any) -> tuple[Place, str]:  # noqa: ANN401 (checked here)
    found = entity if isinstance(entity, Mapping) else getattr(entity, "__dict__", {})
    start, end = found.get("start"), found.get("end")
    if not isinstance(start, int) or not isinstance(end, int) or not 0 <= start < end:
        raise ConfigError(
            f'expected an entity with "start" and "end", places in the text, found {shown(entity)}'
        )
    return (start, end), str(found.get("label", ""))


@dataclass(frozen=True)
class RelatedEntity:
    """An entity of a text: its first mention, `text[start:end]`, and its kind."""

    text: str
    start: int
    end: int
    label: str


@dataclass(frozen=True)
class FoundRelation:
    """A relation from one entity to another, which are numbers in the list of entities."""

    head: int
    tail: int
    label: str
    probability: float


@dataclass(frozen=True)
class RelationsPrediction:
    """A text with its entities and the relations between them.

    Attributes:
        text: as given, without marks (tokens that were given as a list are joined by blanks).
        tokens: of the text.
        offsets: start and end of each token in the text.
        entities: as given.
        relations: those that were found, in the order of the text.
    """

    text: str
    tokens: list[str]
    offsets: list[tuple[int, int]]
    entities: list[RelatedEntity]
    relations: list[FoundRelation]

    def __str__(self) -> str:
        """Return a line for each relation; the bare text if there is none."""
        names = [entity.text for entity in self.entities]
        lines = [
            f"{names[one.head]} --{one.label}--> {names[one.tail]}  ({one.probability:.2f})"
            for one in self.relations
        ]
        return "\n".join(lines) or self.text

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, with probabilities rounded to four places."""
        return plain_data(self)


def present_relations(
    item: RelationsInput, output: Sequence[PredictedPair], no_relation: str
) -> RelationsPrediction:
    """Return the relations of a text, each from its first entity to its second."""
    relations = []
    for pair in output:
        if pair.label != no_relation:
            name, reverse = split_label(pair.label)
            ends = (pair.tail, pair.head) if reverse else (pair.head, pair.tail)
            relations.append(FoundRelation(*ends, name, pair.scores[pair.label]))
    entities = [
        RelatedEntity(item.text[start:end], start, end, entity.kind)
        for ((start, end), *_), entity in zip(item.places, item.entities, strict=True)
    ]
    return RelationsPrediction(**item.fields(), entities=entities, relations=relations)
