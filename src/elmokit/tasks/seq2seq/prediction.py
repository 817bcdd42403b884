"""Texts to write something for, and what was written."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmokit.base import drawing
from elmokit.errors import ConfigError, DataError
from elmokit.tasks.core import TextInput, plain_data
from elmokit.tasks.seq2seq.head import WrittenText
from elmokit.tasks.seq2seq.target_vocabulary import BLANK
from elmokit.text import Tokenizer

_MOST_INCHES = 40.0
_NAMES = ("source", "text")
_BAR = "█"


@dataclass(frozen=True)
class SourceInput:
    """The texts of a source, and how the text to write begins.

    Attributes:
        parts: the text to translate; or the turns of a dialogue, the last one last.
        begin: what the text to write begins with, or "".
    """

    parts: tuple[TextInput, ...]
    begin: str = ""

    @classmethod
    def read(cls, given: Any, tokenize: Tokenizer) -> "SourceInput":  # noqa: ANN401 (see below)
        """Tokenise a source.

        Args:
            given: a string or a list of tokens; or a mapping with one of these as "source" (or "text", or for
                a dialogue a list of them as "turns"), and perhaps with a "begin", the words that the text to
                write has to begin with.
            tokenize: for strings.

        Raises:
            ConfigError: it is none of these.
        """
        if not isinstance(given, Mapping):
            return cls((TextInput.read(given, tokenize),))
        texts = given.get("turns", [given[name] for name in _NAMES if name in given])
        begin = given.get("begin", "")
        if not isinstance(texts, list | tuple) or not texts or not isinstance(begin, str):
            raise ConfigError(
                'expected a text as "source" or a list of them as "turns", and perhaps a string as "begin", '
                f"found the keys {', '.join(map(str, given)):.80}"
            )
        return cls(tuple(TextInput.read(text, tokenize) for text in texts), begin)

    @property
    def texts(self) -> list[list[str]]:
        """The tokens of each part."""
        return [text for part in self.parts for text in part.texts]


@dataclass(frozen=True)
class WrittenAlternative:
    """Another text that the search found, with its score."""

    text: str
    score: float


@dataclass(frozen=True)
class WrittenPrediction:
    """A source with the text that was written for it.

    Attributes:
        source: the text, or the turns of a dialogue with tabs between them.
        source_tokens: the tokens of all turns.
        text: what was written; "" for a source without tokens.
        pieces: of the text; ▁ stands for a blank.
        score: the log-probability of the text, divided by its length penalty.
        alternatives: other texts that the search found, the best first.
        attention: for each piece how much it attends to each token of the source.
    """

    source: str
    source_tokens: list[str]
    text: str
    pieces: list[str]
    score: float
    alternatives: list[WrittenAlternative]
    attention: list[list[float]]

    def __str__(self) -> str:
        """Return the text."""
        return self.text

    def table(self) -> str:
        """Return a line for each piece with the source token that it attends to most, and how much."""
        width = max([len(piece) for piece in self.pieces], default=0)
        lines = [self.text]
        for piece, weights in zip(self.pieces, self.attention, strict=True):
            share, token = max(zip(weights, self.source_tokens, strict=True))
            shown = piece.replace(BLANK, " ").ljust(width)
            lines.append(f"  {shown}  {share:4.2f} {_BAR * round(10 * share):<10} {token}")
        return "\n".join(lines) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, with attention rounded to two places and scores to three."""
        weights = [[round(weight, 2) for weight in row] for row in self.attention]
        others = [{"text": one.text, "score": round(one.score, 3)} for one in self.alternatives]
        return plain_data(self) | {
            "attention": weights,
            "score": round(self.score, 3),
            "alternatives": others,
        }

    def draw(self, path: str | Path) -> None:
        """Draw the attention: a row for each piece of the text, a column for each token of the source."""
        rows, columns = [piece.replace(BLANK, " ").strip() for piece in self.pieces], self.source_tokens
        if not rows or not columns:
            raise DataError("a source without tokens has no attention to draw; give a text")
        width, height = (min(2.0 + 0.3 * len(tokens), _MOST_INCHES) for tokens in (columns, rows))
        with drawing(Path(path), width=width + 1, height=height) as figure:
            axes = figure.subplots()
            image = axes.imshow(self.attention, vmin=0, vmax=1, cmap="Blues", aspect="auto")
            upright = max(map(len, columns)) <= 2  # as Chinese characters are
            axes.set_xticks(range(len(columns)), columns, rotation=0 if upright else 90)
            axes.set_yticks(range(len(rows)), rows)
            axes.set(xlabel="source", ylabel="text")
            figure.colorbar(image, label="attention")


def present_written(item: SourceInput, output: WrittenText) -> WrittenPrediction:
    """Return what was written beside its source."""
    return WrittenPrediction(
        source="\t".join(part.text for part in item.parts),
        source_tokens=[token for text in item.texts for token in text],
        text=output.text,
        pieces=list(output.pieces),
        score=output.score,
        alternatives=[WrittenAlternative(text, score) for text, score in output.others],
        attention=output.attention.tolist(),
    )


def turns_of(given: Any) -> Any:  # noqa: ANN401 (what `SourceInput.read` takes)
    """Return a string with tabs as the turns of a dialogue, anything else as it is."""
    if isinstance(given, str) and "\t" in given:
        return {"turns": [turn for turn in given.split("\t") if turn.strip()] or [""]}
    if isinstance(given, Mapping) and isinstance(given.get("turns"), str):
        return {**given, "turns": [given["turns"]]}
    return given
