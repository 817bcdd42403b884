"""Find the nearest uses of a word in a text, as in the table of "play" in Peters et al. 2018, section 5."""

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from elmokit.errors import ConfigError, DataError
from elmokit.text import Input, TextSource, read_texts, split_language

if TYPE_CHECKING:  # these import torch
    from elmokit.embed import Embedder, Sentence

Read: TypeAlias = Callable[[], Iterable[Input]]


@dataclass(frozen=True, kw_only=True)
class Use:
    """One use of a word.

    Attributes:
        cosine: Cosine similarity to the query.
        line: Number of its line (or sentence, if the text was split) from 1; 0 for a query that was given.
        text: Its sentence.
        start: Start of the word in the sentence.
        end: End of the word.
    """

    cosine: float
    line: int
    text: str
    start: int
    end: int


def nearest_uses(
    embedder: "Embedder",
    source: TextSource,
    word: str,
    *,
    query: str | None = None,
    k: int = 10,
    layer: int = -1,
    any_word: bool = False,
    tokens: bool = False,
    split: bool | str = False,
) -> tuple[Use, list[Use]]:
    """Find the uses of a word in a text that are most like its use in a given sentence.

    Args:
        embedder: The model.
        source: A text file, one sentence per line; "-" for standard input; or a list of lines.
        word: The word; case is ignored.
        query: A sentence that has the word. Without it, the first one in the text.
        k: How many uses to find.
        layer: Which of the L+1 layers to compare; the top one separates senses best.
        any_word: Compare with all words of the text, not only with the same one.
        tokens: Whether lines and the query are tokens separated by blanks.
        split: Whether to split running text into sentences first. A language code chooses the rules; True
            means the language of the model's tokenizer.

    Returns:
        The use in the query (the first if there are several), and the nearest uses, nearest first.
        Repetitions of the query's sentence are left out.

    Raises:
        ConfigError: There is no such layer, or no query for standard input, which cannot be read twice.
        DataError: The word is not in the query, or, without a query, not in the text.

    Example:
        >>> nearest_uses(elmokit.load("en"), "news.txt", "play", query="She wrote a play.")  # doctest: +SKIP
        (Use(cosine=1.0, line=0, ...), [Use(cosine=0.83, line=210, ...), ...])
    """
    if not -embedder.num_layers <= layer < embedder.num_layers:
        raise ConfigError(f"there is no layer {layer}; the model has 0 to {embedder.num_layers - 1}")
    if query is None and str(source) == "-":
        raise ConfigError("standard input cannot be read twice; pass the sentence to start from, query=TEXT")
    language = split_language(split, embedder.tokenizer_spec.language, tokens=tokens)
    read = partial(read_texts, source, tokens=tokens, split=language)
    if query is None:
        line, sentence = _first_use(embedder, read, word, f"the text {source}")
    else:
        given = [query.split() if tokens else query]
        line, (_, sentence) = 0, _first_use(embedder, lambda: given, word, f"the query {query!r}")
    position = _positions(sentence, word)[0]
    vector = _unit(sentence.layers[layer, position])  # (D,)
    asked = _use(sentence, position, cosine=1.0, line=line)

    def uses() -> Iterator[Use]:
        for number, other in _sentences(embedder, read, None if any_word else word):
            if other.text == sentence.text:
                continue
            cosines = _unit(other.layers[layer]) @ vector  # (T,)
            for at in range(len(other.tokens)) if any_word else _positions(other, word):
                yield _use(other, at, cosine=float(cosines[at]), line=number)

    # nlargest keeps only k uses in memory.
    return asked, heapq.nlargest(k, uses(), key=lambda use: (use.cosine, -use.line, -use.start))


def _first_use(embedder: "Embedder", read: Read, word: str, where: str) -> tuple[int, "Sentence"]:
    """Return the first sentence that has the word, and its number."""
    for number, sentence in _sentences(embedder, read, word):
        if _positions(sentence, word):
            return number, sentence
    pieces = embedder.embed(word).tokens
    hint = f"; the model reads it as the tokens {pieces}, ask for one of them" if len(pieces) > 1 else ""
    raise DataError(f"{where} has no token {word!r}, expected at least one{hint}")


def _sentences(embedder: "Embedder", read: Read, word: str | None) -> Iterator[tuple[int, "Sentence"]]:
    """Embed the sentences (if `word` is given, only those that contain it) and number them."""
    numbers: deque[int] = deque()  # of the sentences that the embedder has taken and not yet returned

    def texts() -> Iterator[Input]:
        for number, text in enumerate(read(), start=1):
            line = text if isinstance(text, str) else " ".join(text)
            if word is None or word.casefold() in line.casefold():
                numbers.append(number)
                yield text

    for sentence in embedder.stream(texts()):
        yield numbers.popleft(), sentence


def _positions(sentence: "Sentence", word: str) -> list[int]:
    return [at for at, token in enumerate(sentence.tokens) if token.casefold() == word.casefold()]


def _use(sentence: "Sentence", position: int, *, cosine: float, line: int) -> Use:
    start, end = sentence.offsets[position]
    return Use(cosine=cosine, line=line, text=sentence.text, start=start, end=end)


def _unit(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    norms: npt.NDArray[np.float32] = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, np.maximum(norms, 1e-12), dtype=np.float32)
