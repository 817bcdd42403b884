"""The nearest uses of a word in a text: the table of "play" in Peters et al. 2018, section 5."""

import heapq
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from elmokit.errors import ConfigError, DataError
from elmokit.text import read_lines

if TYPE_CHECKING:  # torch, which `--help` does without
    from elmokit.embed import Embedder, Sentence


@dataclass(frozen=True, kw_only=True)
class Use:
    """One use of a word.

    Attributes:
        cosine: Cosine of its vector and the query's.
        line: Number of its line in the text, from 1; 0 for a query that was given apart.
        text: Its sentence.
        start: Where the word begins in the sentence.
        end: Where it ends.
    """

    cosine: float
    line: int
    text: str
    start: int
    end: int


def nearest_uses(
    embedder: "Embedder",
    source: str | Path,
    word: str,
    *,
    query: str | None = None,
    k: int = 10,
    layer: int = -1,
    any_word: bool = False,
) -> tuple[Use, list[Use]]:
    """Find where a text uses a word most like a given sentence does.

    Args:
        embedder: The model.
        source: A text file, a sentence a line.
        word: The word; upper and lower case are the same.
        query: A sentence with the word. Without it the first one in the text.
        k: How many uses to find.
        layer: Which of the L+1 layers is compared; the top one tells senses apart best.
        any_word: Compare with all words of the text, not only with the same one.

    Returns:
        The use that was asked for (the first in its sentence), and the nearest ones, nearest first.
        Repetitions of the query's own sentence are left out.

    Raises:
        ConfigError: There is no such layer, or `source` would have to be read twice and is standard input.
        DataError: The query does not have the word, or without one the text.

    Example:
        >>> nearest_uses(elmokit.load("en"), "news.txt", "play", query="She wrote a play.")  # doctest: +SKIP
        (Use(cosine=1.0, line=0, ...), [Use(cosine=0.83, line=210, ...), ...])
    """
    if not -embedder.num_layers <= layer < embedder.num_layers:
        raise ConfigError(f"there is no layer {layer}; the model has 0 to {embedder.num_layers - 1}")
    line, sentence = _query(embedder, source, word, query)
    position = _positions(sentence, word)[0]
    vector = _unit(sentence.layers[layer, position])  # (D,)
    asked = _use(sentence, position, cosine=1.0, line=line)

    def uses() -> Iterator[Use]:
        for number, other in _sentences(embedder, source, None if any_word else word):
            if other.text == sentence.text:
                continue
            cosines = _unit(other.layers[layer]) @ vector  # (T,)
            for at in range(len(other.tokens)) if any_word else _positions(other, word):
                yield _use(other, at, cosine=float(cosines[at]), line=number)

    # nlargest holds no more than k uses at a time.
    return asked, heapq.nlargest(k, uses(), key=lambda use: (use.cosine, -use.line, -use.start))


def _query(embedder: "Embedder", source: str | Path, word: str, query: str | None) -> tuple[int, "Sentence"]:
    """Return the sentence that is asked about, and its line in the text (0 if it is not from there)."""
    if query is None and str(source) == "-":
        raise ConfigError(
            "standard input cannot be read twice; pass the sentence to start from as query (--query)"
        )
    candidates = (
        _sentences(embedder, source, word) if query is None else ((0, s) for s in embedder.stream([query]))
    )
    for line, sentence in candidates:
        if _positions(sentence, word):
            return line, sentence
    (split,) = embedder.stream([word])
    hint = (
        ""
        if len(split.tokens) == 1
        else f"; the model reads it as the tokens {split.tokens}, ask for one of them"
    )
    where = f"the text {source}" if query is None else f"the query {query!r}"
    raise DataError(f"{where} has no token {word!r}, expected at least one{hint}")


def _sentences(
    embedder: "Embedder", source: str | Path, word: str | None
) -> Iterator[tuple[int, "Sentence"]]:
    """Embed the lines, only those with `word` in them if it is given, and give each its number."""
    numbers: deque[int] = deque()  # of the lines that the embedder has taken and not yet given back

    def lines() -> Iterator[str]:
        for number, line in enumerate(read_lines(source), start=1):
            if word is None or word.casefold() in line.casefold():
                numbers.append(number)
                yield line

    for sentence in embedder.stream(lines()):
        yield numbers.popleft(), sentence


def _positions(sentence: "Sentence", word: str) -> list[int]:
    return [at for at, token in enumerate(sentence.tokens) if token.casefold() == word.casefold()]


def _use(sentence: "Sentence", position: int, *, cosine: float, line: int) -> Use:
    start, end = sentence.offsets[position]
    return Use(cosine=cosine, line=line, text=sentence.text, start=start, end=end)


def _unit(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    norms: npt.NDArray[np.float32] = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, np.maximum(norms, 1e-12), dtype=np.float32)
