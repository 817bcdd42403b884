"""Which words a vector is made of: leave out one word after another and see how far the vector turns.

With v the vector of a text or of one of its words, and v₋ₜ the same where word t was left out,

    influence of t = 1 - cos(v, v₋ₜ)                        how far the vector turns
                   = cos(v, w) - cos(v₋ₜ, w)                what t adds to the similarity with another text w
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from typing import Any

import numpy as np

from elmokit.base import Shade, group_until, shaded_for_terminal, shaded_html
from elmokit.embed.reader import Text
from elmokit.embed.sentence import Floats, Sentence
from elmokit.embed.sentence_vectors import Pooler, SentencePooling
from elmokit.embed.text_embedder import PreparedText, TextEmbedder
from elmokit.errors import ConfigError, DataError
from elmokit.text import Run, find_one

_STRONGEST = 8  # words that are listed for people


@dataclass(frozen=True)
class WordInfluence:
    """A word, its place in the text, and what leaving it out changes; None for the word in question."""

    text: str
    start: int
    end: int
    influence: float | None


@dataclass(frozen=True)
class VectorExplanation:
    """Which words a vector is made of.

    Attributes:
        text: as given; tokens that were given as a list are joined by blanks.
        of: the word whose vector it is, or "" for the vector of the whole text.
        other: the text that the similarity is with, or "".
        similarity: the cosine with the vector of `other`; None without one.
        pooling: how the vectors of words become that of the text; "" for the vector of a word.
        layers: the weights of the layers in the vector, the token layer first.
        words: the influence of each word.
    """

    text: str
    of: str
    other: str
    similarity: float | None
    pooling: str
    layers: list[float]
    words: list[WordInfluence]

    def title(self) -> str:
        """Return in a line what the influences are."""
        if self.similarity is not None:
            return f"similarity {self.similarity:.3f}; what each word adds to it"
        what = f"the vector of {self.of!r}" if self.of else f"the vector of the text ({self.pooling})"
        return f"{what}: how far it turns (1 - cosine) when a word is left out"

    def strongest(self, count: int = _STRONGEST) -> list[WordInfluence]:
        """Return the words with the greatest influence."""
        known = [word for word in self.words if word.influence is not None]
        return sorted(known, key=lambda word: -abs(word.influence or 0.0))[:count]

    def __str__(self) -> str:
        """Return the words with the greatest influence and the layers, for people."""
        return self._report(self.text)

    def coloured(self) -> str:
        """Return the same for a terminal, the words on blue; on orange if they make texts less similar."""
        return self._report(shaded_for_terminal(self.text, self._shades()))

    def html(self) -> str:
        """Return the same as HTML without a page around it."""
        other = f"<p>{escape(self.other)}</p>" if self.other else ""
        weights = "  ".join(f"{weight:.3f}" for weight in self.layers)
        return (
            f"<section><h3>{escape(self.title())}</h3><p>{shaded_html(self.text, self._shades())}</p>{other}"
            f"<p>weights of the layers from below: {weights}</p></section>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)

    def _shades(self) -> list[Shade]:
        most = max((abs(word.influence or 0.0) for word in self.words), default=0.0) or 1.0
        return [
            Shade(word.start, word.end, word.influence / most, f"{word.influence:.3f}")
            for word in self.words
            if word.influence is not None
        ]

    def _report(self, text: str) -> str:
        lines = [self.title(), f"  {text}", *([f"  {self.other}"] if self.other else [])]
        lines += [f"{word.influence:8.3f}  {word.text}" for word in self.strongest()]
        weights = "  ".join(f"{weight:.3f}" for weight in self.layers)
        return "\n".join([*lines, f"  weights of the layers from below  {weights}"])


def explain_vector(
    embedder: TextEmbedder,
    text: Text,
    *,
    at: str | int | None = None,
    other: Text | None = None,
    pooling: SentencePooling | None = None,
) -> VectorExplanation:
    """Explain the vector of a text, or of one of its words, by the words that it is made of.

    Each word is left out in turn, and the text is read again without it.

    Args:
        embedder: what `elmokit.load` returned.
        text: a string, or a list of tokens.
        at: a word that occurs once, or the position of one: explain its vector, which the others have
            coloured. By default the vector of the whole text is explained.
        other: explain by the words of `text` how similar it is to this one.
        pooling: how the vector of a text is made; see `Embedder.encode`.

    Raises:
        ConfigError: the word is not there or occurs several times, or the arguments exclude each other.
        DataError: the text has less than two words, so that none can be left out.

    Example:
        >>> import elmokit
        >>> found = elmokit.explain_vector(elmokit.load("en"), "He swam to the bank of the river.", at="bank")
        >>> found.words[0].text, found.of
        ('He', 'bank')
    """
    if at is not None and (other is not None or pooling is not None):
        raise ConfigError(
            "other and pooling are for the vector of a whole text, not for that of a word; leave them out"
        )
    if embedder.stateful:
        raise ConfigError("a stateful embedder reads each text differently; load the model without stateful")
    whole = embedder.prepare(text)
    runs = whole.runs or [(place, place + 1) for place in range(len(whole.words))]
    places = [(whole.offsets[start][0], whole.offsets[end - 1][1]) for start, end in runs]
    words = [whole.text[start:end] for start, end in places]
    if len(runs) < 2:
        raise DataError(f"expected a text of at least two words, found {whole.text!r:.60}; give a longer one")
    texts = [whole, *(_without(whole, run) for run in runs)]
    name = pool = ""
    similarity = None
    influences: Sequence[float | None]
    if at is not None:
        first, last = find_one(words, places, at)
        name = whole.text[places[first][0] : places[last - 1][1]]
        layers: list[float] = embedder.mix.coefficients().tolist()
        influences = _of_word(embedder, texts, runs, (first, last))
    else:
        pooler = Pooler.of(embedder, pooling, None)
        pool, layers = pooler.pooling, _layer_weights(embedder, pooler)
        vectors = _unit(np.stack([pooler(sentence) for sentence in _read(embedder, texts)]))
        target = vectors[0]
        if other is not None:
            target = _unit(pooler(next(_read(embedder, [embedder.prepare(other)]))))
            similarity = float(vectors[0] @ target)
        influences = (vectors[0] @ target - vectors[1:] @ target).tolist()
    found = [
        WordInfluence(word, *place, influence)
        for word, place, influence in zip(words, places, influences, strict=True)
    ]
    shown = "" if other is None else other if isinstance(other, str) else " ".join(other)
    return VectorExplanation(whole.text, name, shown, similarity, pool, layers, found)


def _without(text: PreparedText, run: Run) -> PreparedText:
    kept = [place for place in range(len(text.words)) if not run[0] <= place < run[1]]
    words, offsets = [text.words[place] for place in kept], [text.offsets[place] for place in kept]
    return PreparedText(text.text, words, offsets, [], [], None)


def _read(embedder: TextEmbedder, texts: Sequence[PreparedText]) -> Iterator[Sentence]:
    for group in group_until([replace(text, runs=None) for text in texts], len, embedder.batch_tokens):
        yield from embedder.embed_prepared(group, copy=False)


def _of_word(
    embedder: TextEmbedder, texts: Sequence[PreparedText], runs: Sequence[Run], chosen: Run
) -> list[float | None]:
    """Return how far the vector of the chosen words turns where each other one is left out."""
    start, end = runs[chosen[0]][0], runs[chosen[1] - 1][1]
    sentences = _read(embedder, texts)
    whole = _unit(next(sentences).vectors[start:end].mean(axis=0))
    found: list[float | None] = []
    for place, (run, sentence) in enumerate(zip(runs, sentences, strict=True)):
        if chosen[0] <= place < chosen[1]:
            found.append(None)
            continue
        gone = run[1] - run[0] if place < chosen[0] else 0
        vector = _unit(sentence.vectors[start - gone : end - gone].mean(axis=0))
        found.append(1.0 - float(whole @ vector))
    return found


def _layer_weights(embedder: TextEmbedder, pooler: Pooler) -> list[float]:
    if pooler.fitted is None:
        weights: list[float] = embedder.mix.coefficients().tolist()
    elif pooler.pooling == "sif":  # the mean of the layers
        weights = [1 / embedder.num_layers] * embedder.num_layers
    else:
        weights = [float(weight) for weight in pooler.fitted.layer_weights]
    return weights


def _unit(vectors: Floats) -> Floats:
    lengths = np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
    return np.asarray(vectors / lengths, np.float32)
