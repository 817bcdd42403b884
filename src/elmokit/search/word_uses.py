"""All uses of a word in a text, grouped into senses; see `uses_picture` for how they are drawn."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from elmokit.base import check_whole_number
from elmokit.errors import ConfigError, DataError
from elmokit.search.clusters import Floats, cluster
from elmokit.text import (
    Input,
    TextColumn,
    TextSource,
    may_contain,
    one_spelling,
    read_columns,
    read_texts,
    split_language,
    tokens_from_list,
)

if TYPE_CHECKING:
    from elmokit.embed import TextEmbedder


@dataclass(frozen=True, kw_only=True)
class WordUse:
    """One use of a word.

    Attributes:
        line: Number of its line (or sentence, if the text was split) from 1.
        sense: The group that it is in.
        word: The word as it is spelt there.
        start: Start of the word in the sentence.
        end: End of the word.
        text: Its sentence.
    """

    line: int
    sense: str
    word: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, eq=False)
class WordUses:
    """The uses of a word in a text.

    Attributes:
        word: The word that was asked for.
        uses: Each use, in the order of the text.
        layers: (L+1, n, 2P) the vectors of the n uses. Unless upper and lower case had to match, those
            of `word` in each place, however it is spelt there: groups are of meanings, not of spellings.
        left_out: How many more there are in the text.
    """

    word: str
    uses: list[WordUse]
    layers: Floats
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.uses)

    @property
    def senses(self) -> list[str]:
        """Return the senses, the commonest first."""
        return [sense for sense, _ in Counter(use.sense for use in self.uses).most_common()]

    def cosines(self, layer: int) -> Floats:
        """Return how alike each use is to each other one at a layer, (n, n)."""
        vectors = self.layers[layer]
        unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return np.asarray(unit @ unit.T, np.float32)

    def within_and_across(self, layer: int) -> tuple[float, float]:
        """Return the mean cosine of two uses of one sense, and of two of different senses (or NaN)."""
        senses = np.array([use.sense for use in self.uses])
        same, two = senses[:, None] == senses, ~np.eye(len(senses), dtype=bool)
        cosines = self.cosines(layer)

        def mean(chosen: "np.ndarray[tuple[int, int], np.dtype[np.bool_]]") -> float:
            return float(cosines[chosen].mean()) if chosen.any() else float("nan")

        return mean(same & two), mean(~same)

    def draw(self, path: str | Path) -> None:
        """Draw the uses at each layer, coloured by sense, and the most typical sentences of each sense.

        Raises:
            MissingExtra: matplotlib is not installed.
        """
        from elmokit.search.uses_picture import draw_uses

        draw_uses(self, Path(path))


def find_uses(
    embedder: "TextEmbedder",
    source: TextSource,
    word: str,
    *,
    match_case: bool = False,
    num_senses: int | None = None,
    sense_column: str | None = None,
    tokens: bool = False,
    split: bool | str = False,
    most: int = 1000,
) -> WordUses:
    """Find all uses of a word in a text and group them into senses.

    Args:
        embedder: The model.
        source: A text file, one sentence per line; "-" for standard input; a column of a table; or a list of
            lines.
        word: The word. It may consist of several tokens, whose mean is then its vector.
        match_case: Whether the word has to match in upper and lower case, too. If not, each use is read as if
            it were spelt like `word`.
        num_senses: How many groups to make of the top layer's vectors; by default as many as show.
        sense_column: Take the senses from this column instead. `source` is then a column of the same table: a
            `TextColumn`, or the path of a table that has a column `text`.
        tokens: Whether lines are tokens separated by blanks.
        split: Whether to split running text into sentences first. A language code chooses the rules; True
            means the language of the model's tokenizer.
        most: How many uses to keep; the others are counted.

    Raises:
        ConfigError: Two settings contradict each other.
        DataError: The text has no such word, or the table no such column.

    Example:
        >>> uses = find_uses(elmokit.load("en"), "news.txt", "bank")      # doctest: +SKIP
        >>> uses.draw("bank.png")                                         # doctest: +SKIP
    """
    check_whole_number("most", most, least=1)
    if num_senses is not None:
        check_whole_number("num_senses", num_senses, least=1)
        if sense_column is not None:
            raise ConfigError("num_senses makes groups, sense_column takes given ones; choose one of them")
    language = split_language(split, embedder.tokenizer_spec.language, tokens=tokens)
    if sense_column is None:
        texts: Iterable[tuple[Input, str]] = (
            (text, "") for text in read_texts(source, tokens=tokens, split=language)
        )
    elif tokens or language is not None or isinstance(source, list | tuple) or str(source) == "-":
        raise ConfigError("sense_column needs a table with a sentence in each row: .csv, .tsv or .jsonl")
    else:
        column = source if isinstance(source, TextColumn) else TextColumn(source)
        texts = _with_senses(column, sense_column)
    found = _collect(embedder, texts, word, match_case=match_case, most=most)
    if not found.uses:
        raise DataError(f"the text has no word {word!r}, expected at least one; only whole words count")
    if sense_column is not None:
        return found
    labels = cluster(found.layers[-1], num_senses)
    several = labels.max() > 0
    named = [
        WordUse(**{**vars(use), "sense": f"sense {label + 1}" if several else "all uses"})
        for use, label in zip(found.uses, labels.tolist(), strict=True)
    ]
    return WordUses(word, named, found.layers, found.left_out)


def _collect(
    embedder: "TextEmbedder", texts: Iterable[tuple[Input, str]], word: str, *, match_case: bool, most: int
) -> WordUses:
    taken: list[tuple[int, str, str]] = []  # line, sense and text of what the embedder has taken

    def with_word() -> Iterator[Input]:
        for line, (given, sense) in enumerate(texts, start=1):
            text = given if isinstance(given, str) else " ".join(given)
            if may_contain(text, word):
                taken.append((line, sense, text))
                yield given if match_case else _respelt(given, word)

    uses: list[WordUse] = []
    vectors: list[Floats] = []
    left_out = 0
    for number, sentence in enumerate(embedder.stream(with_word())):
        line, sense, text = taken[number]
        merged = sentence.merged(sentence.find(word, match_case=match_case))
        for at, (start, end) in enumerate(merged.offsets):
            if len(uses) == most:
                left_out += 1
                continue
            spelt = text[start:end]
            uses.append(WordUse(line=line, sense=sense, word=spelt, start=start, end=end, text=text))
            vectors.append(merged.layers[:, at])
    layers = np.stack(vectors, axis=1) if vectors else np.zeros((embedder.num_layers, 0, embedder.dim))
    return WordUses(word, uses, np.asarray(layers, np.float32), left_out)


def _respelt(given: Input, word: str) -> Input:
    """Return a sentence or its tokens with one spelling of the word."""
    if isinstance(given, str):
        return one_spelling(given, word)
    text = one_spelling(" ".join(given), word)
    return [text[token.start : token.end] for token in tokens_from_list(given)]


def _with_senses(column: TextColumn, sense_column: str) -> Iterator[tuple[Input, str]]:
    rows = read_columns(column.path, text=column.name, sense=sense_column)
    return ((text, sense) for text, sense in rows)
