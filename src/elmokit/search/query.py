"""Answer queries over segments: BM25, vectors of passages, vectors of words, and their fusion.

The passages that BM25 or the vectors of passages find are scored by every retriever:

    score = bm25 / highest bm25 + 0.2 · dense + 0.2 · alike + 0.75 · late
    dense = the cosine of the vectors of query and passage
    alike = the mean cosine with the other passages among the three that BM25 finds best
    late  = the mean over the words of the query, weighted by their rarity in the text that the model's
            statistics were fitted on and in the index, of the highest cosine with a word of the passage

Words are compared last, and only in the passages with the highest sum of the other three.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from elmokit.search.documents import Value
from elmokit.search.metadata import Filter
from elmokit.search.passage_vectors import PassageVectors
from elmokit.search.postings import BM25, Bools
from elmokit.search.quantised import Floats, Quantised, to_unit
from elmokit.search.ranking import Place, Ranking, WordScores, alike, best, compare_words, fuse, rank
from elmokit.search.segments import Segment

if TYPE_CHECKING:
    from elmokit.embed import Sentence

RETRIEVERS = ("bm25", "dense", "late")
# Chosen on the train queries of SciFact by benchmarks/search.py.
WEIGHTS: dict[str, float] = {"bm25": 1.0, "dense": 0.2, "alike": 0.4, "late": 0.5, "often": 0.5}
_DEPTH = 100  # passages of each list that are fused
_COMPARED = 40  # passages that are compared word by word, if there are other scores
_LEAST_WEIGHT = 0.25  # of the highest; words of a query that count less are not explained


@dataclass(frozen=True, kw_only=True)
class Match:
    """A word of the query, and the word of the passage that is nearest to it.

    Attributes:
        word: Of the query.
        found: Of the passage.
        cosine: How near they are.
        start: Where the found word begins in the text of the hit.
        end: Where it ends.
    """

    word: str
    found: str
    cosine: float
    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A document that was found.

    Attributes:
        id: Its name.
        score: The higher the better; comparable within one query only.
        text: Its best passage.
        start: Where the passage begins in the document.
        metadata: The document's.
        ranks: The rank of the passage in the list of each retriever that found it.
        matches: If explained, the words that matched, in the order of the query.
    """

    id: str
    score: float
    text: str
    start: int
    metadata: dict[str, Value]
    ranks: dict[str, int]
    matches: list[Match] = field(default_factory=list)


class Searcher:
    """Searches segments, which do not change.

    Args:
        segments: The segments.
        find_terms: Makes terms of a query.
        vectors: Loads the model when vectors are needed.
    """

    def __init__(
        self,
        segments: Sequence[Segment],
        find_terms: Callable[[str], list[str]],
        vectors: Callable[[], PassageVectors],
    ) -> None:
        self._segments, self._find_terms, self._load = segments, find_terms, vectors

    @cached_property
    def _vectors(self) -> PassageVectors:
        return self._load()

    def search(
        self, queries: list[str], k: int, *, by: Sequence[str], where: Filter | None, explain: bool
    ) -> list[list[Hit]]:
        """Return the hits of each query."""
        allowed = self._allowed(where)
        needed = explain or set(by) & {"dense", "late"}
        sentences: Iterator[Sentence | None] = (
            iter(self._vectors.embedder.stream(queries)) if needed else iter([None] * len(queries))
        )
        return [self._search(query, next(sentences), k, by, allowed, explain=explain) for query in queries]

    @cached_property
    def _bm25(self) -> BM25:
        return BM25([one.postings for one in self._segments], [one.live for one in self._segments])

    def _allowed(self, where: Filter | None) -> list[Bools | None]:
        """Return which passages of each segment are live and meet the conditions; None for all."""
        if not where:
            return [segment.live for segment in self._segments]
        found: list[Bools | None] = []
        for segment in self._segments:
            fitting = segment.metadata.matching(where)[segment.passages[:, 0]]
            found.append(fitting if segment.live is None else fitting & segment.live)
        return found

    def _search(
        self,
        query: str,
        sentence: "Sentence | None",
        k: int,
        by: Sequence[str],
        allowed: list[Bools | None],
        *,
        explain: bool,
    ) -> list[Hit]:
        depth = max(_DEPTH, 3 * k)
        words = self._bm25.scores(self._find_terms(query)) if set(by) & {"bm25", "late"} else []
        vector = self._vector(sentence) if sentence is not None and set(by) & {"dense", "late"} else None
        lists: dict[str, Ranking] = {}
        if words:
            lists["bm25"] = self._by_words(words, depth, allowed)
        if vector is not None and vector.any():
            lists["dense"] = self._by_passages(vector, depth, allowed)
        places = sorted({place for ranking in lists.values() for place, _ in ranking})
        scores: dict[str, Floats] = {}
        if "bm25" in by:
            scores["bm25"] = np.array([words[segment][row] for segment, row in places], np.float32)
        if vector is not None and "dense" in by and places:
            vectors = self._passage_vectors(places)
            scores["dense"] = vectors @ vector
            if "bm25" in by:
                scores["alike"] = alike(vectors, scores["bm25"])
        if sentence is not None and "late" in by:
            found, lists["late"] = self._compare_words(sentence, places, scores, k)
            scores |= {"late": found.nearest, "often": found.often}
        lists = {name: ranking for name, ranking in lists.items() if name in by}
        ranking = next(iter(lists.values())) if len(lists) == 1 else rank(places, fuse(scores, WEIGHTS))
        hits: dict[str, Hit] = {}
        ranks = {
            name: {place: rank for rank, (place, _) in enumerate(one, start=1)} for name, one in lists.items()
        }
        for place, score in ranking:
            segment = self._segments[place[0]]
            name = segment.ids[int(segment.passages[place[1], 0])]
            if name in hits:
                continue
            own = {retriever: of[place] for retriever, of in ranks.items() if place in of}
            hits[name] = self._hit(place, name, score, own, sentence if explain else None)
            if len(hits) == k:
                break
        return list(hits.values())

    def _by_words(self, scores: list[Floats], depth: int, allowed: list[Bools | None]) -> Ranking:
        parts = []
        for number, (score, chosen) in enumerate(zip(scores, allowed, strict=True)):
            rows = np.flatnonzero(score if chosen is None else score * chosen)
            parts.append((number, rows, score[rows]))
        return best(parts, depth)

    def _vector(self, sentence: "Sentence") -> Floats:
        return to_unit(self._vectors.passage([self._vectors.sums(sentence)]))

    def _by_passages(self, vector: Floats, depth: int, allowed: list[Bools | None]) -> Ranking:
        return best(
            (
                (number, *segment.nearest(vector, depth, chosen))
                for number, (segment, chosen) in enumerate(zip(self._segments, allowed, strict=True))
            ),
            depth,
        )

    def _passage_vectors(self, places: list[Place]) -> Floats:
        """Return the vectors of passages, which are sorted by segment, (n, D)."""
        parts = []
        for number, of_segment in groupby(places, key=lambda place: place[0]):
            rows = np.array([row for _, row in of_segment])
            parts.append(self._segments[number].vectors.floats(rows))
        return np.concatenate(parts)

    def _compare_words(
        self, sentence: "Sentence", places: list[Place], others: dict[str, Floats], k: int
    ) -> tuple[WordScores, Ranking]:
        """Return the scores by words, 0 of those that are not compared, and the ranking by the nearest."""
        chosen = np.arange(len(places))
        if others and len(places) > max(_COMPARED, 2 * k):
            best_first = np.argsort(-fuse(others, WEIGHTS), kind="stable")
            chosen = np.sort(best_first[: max(_COMPARED, 2 * k)])
        compared = [places[at] for at in chosen.tolist()]
        found = compare_words(
            self._vectors.words([sentence]),
            self._weights(sentence),
            [self._word_vectors(place) for place in compared],
            np.array([self._bm25.relative_length(*place) for place in compared], np.float32),
        )
        scores = WordScores(np.zeros(len(places), np.float32), np.zeros(len(places), np.float32))
        scores.nearest[chosen], scores.often[chosen] = found
        return scores, rank(compared, found.nearest)

    def _weights(self, sentence: "Sentence") -> Floats:
        """Return how much each word of a query counts."""
        rarity = [self._bm25.rarity(self._find_terms(token)) for token in sentence.tokens]
        return self._vectors.word_weights(sentence) * np.array(rarity, np.float32)

    def _word_vectors(self, place: Place) -> Quantised:
        segment = self._segments[place[0]]
        assert segment.words is not None
        return segment.words.part(slice(*segment.words_of(place[1])))

    def _hit(
        self, place: Place, name: str, score: float, ranks: dict[str, int], query: "Sentence | None"
    ) -> Hit:
        segment = self._segments[place[0]]
        text, start = segment.text_of(place[1])
        matches = [] if query is None else self._matches(segment, place[1], query, text, start)
        metadata = segment.metadata[int(segment.passages[place[1], 0])]
        return Hit(
            id=name, score=score, text=text, start=start, metadata=metadata, ranks=ranks, matches=matches
        )

    def _matches(
        self, segment: Segment, passage: int, query: "Sentence", text: str, begin: int
    ) -> list[Match]:
        """Embed the sentences of a passage again, and find the nearest word for each word of the query."""
        _, first, end = segment.passages[passage].tolist()
        spans = (segment.sentences[first:end] - begin).tolist()
        sentences = self._vectors.embedder.embed([text[start:stop] for start, stop in spans])
        places = [
            (start + token[0], start + token[1])
            for (start, _), sentence in zip(spans, sentences, strict=True)
            for token in sentence.offsets
        ]
        if not places:
            return []
        found = self._vectors.words(sentences)  # (T, D)
        cosines = np.round(self._vectors.words([query]) @ found.T, 4)  # (Q, T)
        nearest: npt.NDArray[np.intp] = cosines.argmax(axis=1)
        weights = self._weights(query)
        least = _LEAST_WEIGHT * weights.max(initial=0)
        return [
            Match(
                word=word,
                found=text[slice(*places[at])],
                cosine=float(cosines[row, at]),
                start=places[at][0],
                end=places[at][1],
            )
            for row, (word, at) in enumerate(zip(query.tokens, nearest.tolist(), strict=True))
            if weights[row] >= least and any(map(str.isalnum, word))
        ]
