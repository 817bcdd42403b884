"""Documents to a graph: sentences, their entities, relations between these, which of them are the same."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from elmokit.base import group_until, progress_display
from elmokit.encoders import Encoder
from elmokit.errors import ConfigError
from elmokit.graph.entity_linking import EntityLinker, Floats, LinkSettings, PlacedEntity
from elmokit.graph.graph_files import check_graph_output
from elmokit.graph.knowledge_graph import Evidence, GraphEdge, GraphNode, KnowledgeGraph, NodeMention
from elmokit.search import Document, as_documents
from elmokit.tasks import LabelledSpan, RelationModel, Tagger, TaskModel
from elmokit.text import split_sentences

_TOGETHER = 20_000  # characters of the documents that are read together
_CONTEXT = 10  # words before and after a mention

AnyTask = TaskModel[Any, Any, Any]


class _Sentence(NamedTuple):
    """A sentence with entities: which document it is in and where it begins, and what is in it."""

    document: Document
    start: int
    text: str
    tokens: list[str]
    offsets: list[tuple[int, int]]
    entities: list[LabelledSpan]


def build_graph(
    documents: Iterable[str | Document],
    *,
    relations: str | Path | RelationModel,
    entities: str | Path | Tagger = "ner-en",
    rename: Mapping[str, str] | None = None,
    least: float = 0.5,
    link: LinkSettings | None = None,
    language: str | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    device: str = "cpu",
    precision: str = "float32",
    progress: bool = False,
) -> KnowledgeGraph:
    """Find the entities of documents and the relations between them.

    Documents are read one after another; what is kept is the graph.

    Args:
        documents: texts, or objects of the class `Document`, whose ids are the names of the documents in the
            graph.
        relations: a model that `train("relations", …)` has made, or its folder.
        entities: a tagger, its folder, or the name of a bundled one.
        rename: the tagger's labels by those that the relations were trained with, such as {"PER": "Peop"}; an
            entity with another label is of a kind that the model does not know.
        least: the probability that a relation needs.
        link: when mentions mean the same thing.
        language: by whose rules text is split into sentences; by default the tagger's.
        out: where to write the graph; see `KnowledgeGraph.save`.
        overwrite: whether to replace what is there.
        device: where the models compute, if they are to be loaded.
        precision: of a frozen ELMo's products, if they are to be loaded; see `load`.
        progress: whether to show how far it is.

    Raises:
        ConfigError: a model is for another task.
        DataError: `out` exists already, or cannot be written.

    Example:
        >>> graph = build_graph(["Ada Lovelace lived in London."], relations="relations")  # doctest: +SKIP
        >>> print(graph)                                                                   # doctest: +SKIP
        Ada Lovelace --Live_In--> London  (0.97, 1 sentence)
    """
    if out is not None:
        check_graph_output(Path(out), overwrite=overwrite)
    opened = {"device": device, "precision": precision}
    model = relations if isinstance(relations, RelationModel) else RelationModel.load(relations, **opened)
    tagger = entities if isinstance(entities, Tagger) else Tagger.load(entities, **opened)
    language = language or tagger.tokenizer.language
    if language is None:
        raise ConfigError("the tagger does not say its language; pass that of the text, e.g. language='en'")
    builder = _Builder(tagger, model, rename or {}, least, link or LinkSettings(), language)
    done = 0
    with progress_display(shown=progress) as start:
        advance = start("documents")
        try:
            for group in group_until(as_documents(documents), lambda one: len(one.text) + 1, _TOGETHER):
                builder.add(group)
                done += len(group)
                advance(len(group), f"{done:,} documents, {len(builder.graph.edges):,} edges")
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"interrupted after {done:,} documents; no graph was written") from None
    if out is not None:
        builder.graph.save(out, overwrite=overwrite)
    return builder.graph


class _Builder:
    """The graph so far, and the models that add to it."""

    def __init__(
        self,
        tagger: Tagger,
        relations: RelationModel,
        rename: Mapping[str, str],
        least: float,
        link: LinkSettings,
        language: str,
    ) -> None:
        self.graph = KnowledgeGraph()
        self._tagger, self._relations = tagger, relations
        self._rename, self._least, self._language = dict(rename), least, language
        self._linker = EntityLinker(link)
        self._edges: dict[tuple[str, str, str], GraphEdge] = {}
        self._encoder = _context_encoder(relations, tagger)

    def add(self, documents: Sequence[Document]) -> None:
        """Add what is in some documents."""
        sentences = [one for one in self._sentences(documents) if one.entities]
        nodes = self._nodes(sentences)
        several = [number for number, one in enumerate(sentences) if len(one.entities) > 1]
        asked = ({"text": sentences[n].text, "entities": sentences[n].entities} for n in several)
        for number, found in zip(several, self._relations.stream(asked), strict=True):
            for relation in found.relations:
                ends = nodes[number][relation.head], nodes[number][relation.tail]
                if relation.probability >= self._least and ends[0] != ends[1]:
                    self._add_edge(*ends, relation.label, relation.probability, sentences[number])

    def _sentences(self, documents: Sequence[Document]) -> Iterator[_Sentence]:
        places = [
            (document, start, document.text[start:end])
            for document in documents
            for start, end in split_sentences(document.text, self._language)
        ]
        tagged = self._tagger.stream(text for _, _, text in places)
        for (document, start, text), found in zip(places, tagged, strict=True):
            entities = [replace(span, label=self._rename.get(span.label, span.label)) for span in found.spans]
            yield _Sentence(document, start, text, found.tokens, found.offsets, entities)

    def _nodes(self, sentences: Sequence[_Sentence]) -> list[list[str]]:
        """Link the mentions of whole documents, and return the ids of the nodes of each sentence."""
        contexts = self._contexts(sentences)
        by_document: dict[str, list[tuple[int, LabelledSpan, PlacedEntity]]] = {}
        for number, (sentence, vectors) in enumerate(zip(sentences, contexts, strict=True)):
            for span, vector in zip(sentence.entities, vectors, strict=True):
                placed = PlacedEntity(span.text, span.label, vector)
                by_document.setdefault(sentence.document.id, []).append((number, span, placed))
        nodes: list[list[str]] = [[] for _ in sentences]
        for document, found in by_document.items():
            numbers = self._linker.link(document, [placed for _, _, placed in found])
            for node in range(len(self.graph.nodes), max(numbers, default=-1) + 1):
                kind = found[numbers.index(node)][1].label
                self.graph.nodes.append(GraphNode(f"n{node + 1}", kind))
            for (number, span, _), node in zip(found, numbers, strict=True):
                begin = sentences[number].start
                mention = NodeMention(document, begin + span.start, begin + span.end, span.text)
                self.graph.nodes[node].mentions.append(mention)
                nodes[number].append(self.graph.nodes[node].id)
        return nodes

    def _contexts(self, sentences: Sequence[_Sentence]) -> Iterator[list[Any]]:
        """Yield the vectors of the contexts of the entities of each sentence."""
        if self._encoder is None:
            yield from ([None] * len(one.entities) for one in sentences)
            return
        for sentence, layers in zip(
            sentences, self._encoder.encode([one.tokens for one in sentences]), strict=True
        ):
            vectors = layers.mean(dim=0).numpy()  # (T, D)
            yield [context_of(vectors, sentence.offsets, one.start, one.end) for one in sentence.entities]

    def _add_edge(
        self, source: str, target: str, relation: str, probability: float, sentence: _Sentence
    ) -> None:
        key = source, target, relation
        if key not in self._edges:
            self._edges[key] = GraphEdge(*key)
            self.graph.edges.append(self._edges[key])
        end = sentence.start + len(sentence.text)
        said = Evidence(sentence.document.id, sentence.start, end, sentence.text, probability)
        self._edges[key].evidence.append(said)


def context_of(vectors: Floats, offsets: Sequence[tuple[int, int]], start: int, end: int) -> Floats:
    """Return the mean vector of the words around a mention, or of its own words if there are no others.

    Args:
        vectors: (T, D) of the tokens of its sentence.
        offsets: of the tokens.
        start: of the mention, in characters of the sentence.
        end: the same.
    """
    inside = [n for n, (first, last) in enumerate(offsets) if first < end and last > start]
    first, last = inside[0], inside[-1]
    near = [*range(max(0, first - _CONTEXT), first), *range(last + 1, min(len(offsets), last + 1 + _CONTEXT))]
    mean: Floats = vectors[near or inside].mean(axis=0)
    return mean


def _context_encoder(*models: AnyTask) -> Encoder | None:
    """Return an encoder of one of the models whose vectors depend on the sentence."""
    return next((one for model in models for one in model.encoders if one.contextual), None)
