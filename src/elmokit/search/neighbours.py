"""Find the nearest uses of a word in a text, as in the table of "play" in Peters et al. 2018, section 5."""

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from elmokit.base import Kind, kind_of
from elmokit.embed import LayerChoice, layer_index
from elmokit.errors import ConfigError, DataError
from elmokit.search.index import Index
from elmokit.text import Input, TextSource, may_contain, read_texts, split_language

if TYPE_CHECKING:
    from elmokit.embed import Sentence, TextEmbedder

Read: TypeAlias = Callable[[], Iterable[Input]]


@dataclass(frozen=True, kw_only=True)
class Use:
    """One use of a word.

    Attributes:
        cosine: Cosine similarity to the query.
        line: Number of its line (or sentence, if the text was split) from 1; 0 for a query that was given.
        word: The word as it is spelt there.
        text: Its sentence.
        start: Start of the word in the sentence.
        end: End of the word.
    """

    cosine: float
    line: int
    word: str
    text: str
    start: int
    end: int


def nearest_uses(
    embedder: "TextEmbedder",
    source: TextSource,
    word: str,
    *,
    query: str | None = None,
    k: int = 10,
    layers: LayerChoice = "top",
    match_case: bool = False,
    any_word: bool = False,
    tokens: bool = False,
    split: bool | str = False,
) -> tuple[Use, list[Use]]:
    """Find the uses of a word in a text that are most like its use in a given sentence.

    Args:
        embedder: The model.
        source: A text file, one sentence per line; "-" for standard input; a list of lines; or the folder of
            an index, whose sentences are compared.
        word: The word. It may consist of several tokens, whose mean is then compared.
        query: A sentence that has the word. Without it, the first one in the text.
        k: How many uses to find.
        layers: Which vectors to compare: a layer by its number (the token layer is 0), "top", "average" or
            "mix"; the top one separates senses best.
        match_case: Whether the word has to match in upper and lower case, too.
        any_word: Compare with all words of the text, not only with the same one.
        tokens: Whether lines and the query are tokens separated by blanks.
        split: Whether to split running text into sentences first. A language code chooses the rules; True
            means the language of the model's tokenizer.

    Returns:
        The use in the query (the first if there are several), and the nearest others, nearest first.

    Raises:
        ConfigError: `layers` is not one layer of the model, or there is no query for standard input, which
            cannot be read twice.
        DataError: The word is not in the query, or, without a query, not in the text.

    Example:
        >>> nearest_uses(elmokit.load("en"), "news.txt", "play", query="She wrote a play.")  # doctest: +SKIP
        (Use(cosine=1.0, line=0, ...), [Use(cosine=0.83, line=210, ...), ...])
    """
    if layers not in ("average", "mix") and not isinstance(layer_index(layers, embedder.num_layers), int):
        raise ConfigError(f"one layer is compared, found layers={layers!r}; choose one, top, average or mix")
    if query is None and str(source) == "-":
        raise ConfigError("standard input cannot be read twice; pass the sentence to start from, query=TEXT")
    language = split_language(split, embedder.tokenizer_spec.language, tokens=tokens)
    read: Read = partial(read_texts, source, tokens=tokens, split=language)
    if isinstance(source, str | Path) and kind_of(source) == Kind.INDEX:
        read = Index.open(source).sentences
    if query is None:
        line, sentence = _first_use(embedder, read, word, f"the text {source}", match_case=match_case)
    else:
        given = [query.split() if tokens else query]
        where = f"the query {query!r}"
        line, (_, sentence) = 0, _first_use(embedder, lambda: given, word, where, match_case=match_case)
    found = sentence.merged(sentence.find(word, match_case=match_case)[:1])
    vector = _unit(found.select(layers))[0]  # (D,)
    asked = _use(found, 0, cosine=1.0, line=line)

    def uses() -> Iterator[Use]:
        for number, other in _sentences(embedder, read, None if any_word else word):
            if not any_word:
                other = other.merged(other.find(word, match_case=match_case))
            cosines = _unit(other.select(layers)) @ vector  # (uses,)
            for at, (start, _) in enumerate(other.offsets):
                if (number, start) != (asked.line, asked.start):
                    yield _use(other, at, cosine=float(cosines[at]), line=number)

    # nlargest keeps only k uses in memory.
    return asked, heapq.nlargest(k, uses(), key=lambda use: (use.cosine, -use.line, -use.start))


def _first_use(
    embedder: "TextEmbedder", read: Read, word: str, where: str, *, match_case: bool
) -> tuple[int, "Sentence"]:
    """Return the first sentence that has the word, and its number."""
    for number, sentence in _sentences(embedder, read, word):
        if sentence.find(word, match_case=match_case):
            return number, sentence
    case = " in this case" if match_case else ""
    raise DataError(f"{where} has no word {word!r}{case}, expected at least one; only whole words count")


def _sentences(embedder: "TextEmbedder", read: Read, word: str | None) -> Iterator[tuple[int, "Sentence"]]:
    """Embed the sentences (if `word` is given, only those that contain it) and number them."""
    numbers: deque[int] = deque()  # of the sentences that the embedder has taken and not yet returned

    def texts() -> Iterator[Input]:
        for number, text in enumerate(read(), start=1):
            line = text if isinstance(text, str) else " ".join(text)
            if word is None or may_contain(line, word):
                numbers.append(number)
                yield text

    for sentence in embedder.stream(texts()):
        yield numbers.popleft(), sentence


def _use(sentence: "Sentence", position: int, *, cosine: float, line: int) -> Use:
    start, end = sentence.offsets[position]
    word = sentence.text[start:end]
    return Use(cosine=cosine, line=line, word=word, text=sentence.text, start=start, end=end)


def _unit(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    norms: npt.NDArray[np.float32] = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, np.maximum(norms, 1e-12), dtype=np.float32)
