"""The formats of labelled relations.

marked     tabs: number, label, sentence with <e1>…</e1> and <e2>…</e2> (SemEval-2010 task 8)
triples    tabs: first entity, second entity, label, text; all occurrences of the names are mentions
multihead  a token a line with its entity, relations and heads (CoNLL-04); see `elmokit.tasks.tagger`
pubtator   documents with entities by their identifiers and relations between these (CDR)
jsonl      an object a line: "text", "entities" (id, type, and offset "0-4", the last character included, or
           start and end, the end not included), "pairs" (e1, e2, label) (DDI)

A .tsv or .txt file is looked into to see which of the first four it is.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations, islice, permutations
from pathlib import Path
from typing import Any

from elmokit.base import shown
from elmokit.errors import DataError
from elmokit.tasks.core import Formats, Tokenize, json_objects, numbered_lines
from elmokit.tasks.relations.data import (
    BACKWARD,
    FORWARD,
    NO_RELATION,
    EntityPair,
    MarkedEntity,
    Place,
    RelationText,
    mention_tokens,
    places_of,
    read_marks,
)
from elmokit.tasks.tagger import read_multi_head
from elmokit.text import Token, split_sentences

_TITLE = re.compile(r"[^\t|]+\|t\|")
_OFFSET = re.compile(r"(\d+)-(\d+)")
_NO_IDENTIFIER = "-1"


def _read_marked(path: Path, tokenize: Tokenize) -> Iterator[RelationText]:
    for where, line in numbered_lines(path):
        if not line.strip():
            continue
        fields = line.split("\t")
        if len(fields) != 3 or not fields[1].strip():
            raise DataError(
                f"{where}: expected number, relation and sentence separated by tabs, found {shown(line)}; "
                "repair the line or remove it"
            )
        text, places = read_marks(fields[2], where)
        if len(places) != 2:
            raise DataError(
                f"{where}: found {len(places)} entities, expected two, marked as <e1>…</e1> and <e2>…</e2>"
            )
        tokens = tokenize(text)
        entities = tuple(MarkedEntity(mention_tokens(tokens, one, where)) for one in places)
        yield _one_sentence(tokens, entities, [EntityPair(0, 1, fields[1].strip())], where)


def _read_triples(path: Path, tokenize: Tokenize) -> Iterator[RelationText]:
    for where, line in numbered_lines(path):
        if not line.strip():
            continue
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) != 4 or not all(fields):
            raise DataError(
                f"{where}: expected two entities, their relation and a text, separated by tabs, found "
                f"{shown(line)}; repair the line or remove it"
            )
        head, tail, label, text = fields
        for name in (head, tail):
            if name not in text:
                raise DataError(f"{where}: {name!r} is not in the text {shown(text)}; repair the line")
        tokens = tokenize(text)
        entities = tuple(
            MarkedEntity(mention_tokens(tokens, places_of(name, text, without=other), where))
            for name, other in ((head, tail), (tail, head))
        )
        yield _one_sentence(tokens, entities, [EntityPair(0, 1, label)], where)


def _read_multi_head(path: Path, tokenize: Tokenize) -> Iterator[RelationText]:
    for one in read_multi_head(path):
        labels: dict[Place, str] = {}
        for head, tail, name in one.relations:
            pair, way = ((head, tail), FORWARD) if head < tail else ((tail, head), BACKWARD)
            labels.setdefault(pair, name + way)  # one pair of the published data has two relations
        entities = tuple(MarkedEntity(((span.start, span.end),), span.label) for span in one.spans)
        pairs = tuple(
            EntityPair(head, tail, labels.get((head, tail), NO_RELATION))
            for head, tail in combinations(range(len(entities)), 2)
        )
        yield RelationText((one.tokens,), entities, pairs, one.where)


def _read_jsonl(path: Path, tokenize: Tokenize) -> Iterator[RelationText]:
    for where, data in json_objects(path):
        text, listed, pairs = data.get("text"), data.get("entities"), data.get("pairs", [])
        if not isinstance(text, str) or not isinstance(listed, list) or not isinstance(pairs, list):
            raise DataError(
                f'{where}: expected an object with "text", "entities" and "pairs", found {shown(data)}'
            )
        tokens = tokenize(text)
        entities: list[MarkedEntity] = []
        numbers: dict[str, int] = {}
        for one in listed:
            if not isinstance(one, dict):
                raise DataError(f"{where}: expected an entity as an object, found {shown(one)}")
            numbers[str(one.get("id", len(numbers)))] = len(entities)
            mentions = mention_tokens(tokens, _json_places(one, where), where)
            entities.append(MarkedEntity(mentions, str(one.get("type", one.get("label", "")))))
        labelled = [_json_pair(one, numbers, where) for one in pairs]
        yield _one_sentence(tokens, tuple(entities), labelled, where)


def _json_places(entity: dict[str, Any], where: str) -> list[Place]:
    """Return the places of an entity, whose parts are one span from the first to the last."""
    start, end = entity.get("start"), entity.get("end")
    if isinstance(start, int) and isinstance(end, int):
        return [(start, end)]
    parts = _OFFSET.findall(str(entity.get("offset", "")))
    if not parts:
        raise DataError(
            f'{where}: expected an entity with "offset" such as "12-20", or with "start" and "end", found '
            f"{shown(entity)}"
        )
    return [(min(int(start) for start, _ in parts), max(int(last) for _, last in parts) + 1)]


def _json_pair(pair: Any, numbers: dict[str, int], where: str) -> EntityPair:  # noqa: ANN401 (JSON)
    names = [str(pair.get(key)) for key in ("e1", "e2")] if isinstance(pair, dict) else []
    if len(names) != 2 or not numbers.keys() >= set(names) or names[0] == names[1]:
        raise DataError(f'{where}: expected a pair with "e1" and "e2" of two entities, found {shown(pair)}')
    label = pair.get("label")
    if not isinstance(label, str) or not label:
        raise DataError(f'{where}: expected a pair with a "label", found {shown(pair)}')
    return EntityPair(numbers[names[0]], numbers[names[1]], label)


def _one_sentence(
    tokens: Sequence[Token], entities: tuple[MarkedEntity, ...], pairs: Sequence[EntityPair], where: str
) -> RelationText:
    return RelationText((tuple(token.text for token in tokens),), entities, tuple(pairs), where)


@dataclass
class _Annotated:
    """A document of PubTator: by identifier the places and the kind of each entity, and the relations."""

    where: str
    text: str
    places: dict[str, list[Place]] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    related: dict[tuple[str, str], str] = field(default_factory=dict)

    def kinds_of(self, pair: tuple[str, str]) -> tuple[str, str]:
        """Return the kinds of two entities."""
        return self.kinds[pair[0]], self.kinds[pair[1]]


def _read_pubtator(path: Path, tokenize: Tokenize) -> Iterator[RelationText]:
    documents, lines = [], []
    for where, line in chain(numbered_lines(path), [("", "")]):
        if line.strip():
            lines.append((where, line))
        elif lines:
            documents.append(_annotated(lines))
            lines = []
    wanted = {one.kinds_of(pair) for one in documents for pair in one.related}
    for one in documents:
        yield _document(one, wanted, tokenize)


def _annotated(lines: Sequence[tuple[str, str]]) -> _Annotated:
    where, title = lines[0]
    number, mark, head = title.partition("|t|")
    abstract = lines[1][1] if len(lines) > 1 else ""
    if not mark or not abstract.startswith(f"{number}|a|"):
        raise DataError(
            f"{where}: expected a title as NUMBER|t|TEXT and an abstract as NUMBER|a|TEXT in the next line, "
            f"found {shown(title)}; a blank line ends a document"
        )
    found = _Annotated(where, f"{head}\n{abstract.removeprefix(f'{number}|a|')}")
    for place, line in lines[2:]:
        fields = line.split("\t")
        if len(fields) == 4:
            missing = next((name for name in fields[2:] if name not in found.places), None)
            if missing is not None:
                raise DataError(f"{place}: {missing} has no mention above; repair or remove the relation")
            found.related[fields[2], fields[3]] = fields[1]
        elif len(fields) >= 6 and fields[1].isdecimal() and fields[2].isdecimal():
            for name in set(fields[5].split("|")) - {_NO_IDENTIFIER}:
                found.places.setdefault(name, []).append((int(fields[1]), int(fields[2])))
                found.kinds.setdefault(name, fields[4])
        else:
            raise DataError(
                f"{place}: expected a mention (number, start, end, text, kind, identifier) or a relation "
                f"(number, name, two identifiers), separated by tabs, found {shown(line)}"
            )
    return found


def _document(one: _Annotated, wanted: set[tuple[str, str]], tokenize: Tokenize) -> RelationText:
    """Return a document with all pairs of those kinds between which there are relations in the file."""
    tokens, sentences = [], []
    for start, end in split_sentences(one.text, "en"):  # PubMed's language
        found = [Token(t.text, start + t.start, start + t.end) for t in tokenize(one.text[start:end])]
        tokens += found
        sentences.append(tuple(token.text for token in found))
    names = sorted(one.places, key=lambda name: (one.places[name], name))
    entities = tuple(
        MarkedEntity(mention_tokens(tokens, one.places[name], one.where), one.kinds[name]) for name in names
    )
    pairs = tuple(
        EntityPair(names.index(head), names.index(tail), one.related.get((head, tail), NO_RELATION))
        for head, tail in permutations(names, 2)
        if one.kinds_of((head, tail)) in wanted
    )
    return RelationText(tuple(sentences), entities, pairs, one.where)


def _read_table_or_text(path: Path, tokenize: Tokenize) -> Iterator[RelationText]:
    """Read a file as what its first lines look like."""
    first = next((line for _, line in islice(numbered_lines(path), 100) if line.strip()), "")
    if first.startswith("#doc"):
        read = _read_multi_head
    elif _TITLE.match(first):
        read = _read_pubtator
    else:
        read = _read_marked if re.search(r"<e\d+>", first) else _read_triples
    return read(path, tokenize)


FORMATS = Formats[RelationText](
    {
        "marked": _read_marked,
        "triples": _read_triples,
        "multihead": _read_multi_head,
        "pubtator": _read_pubtator,
        "jsonl": _read_jsonl,
        "found": _read_table_or_text,
    },
    dict.fromkeys(("", ".txt", ".tsv"), "found") | {".jsonl": "jsonl", ".pubtator": "pubtator"},
    with_offsets=True,
)
