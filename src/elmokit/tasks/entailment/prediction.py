"""Pairs to predict labels for, and what is said about them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmokit.base import drawing
from elmokit.errors import ConfigError, DataError
from elmokit.tasks.core import TextInput, plain_data
from elmokit.tasks.entailment.data import HEADINGS
from elmokit.text import Tokenizer

_MOST_INCHES = 40.0


@dataclass(frozen=True)
class PairInput:
    """Two texts, each with its tokens and their places."""

    premise: TextInput
    hypothesis: TextInput

    @classmethod
    def read(cls, given: Any, tokenize: Tokenizer) -> "PairInput":  # noqa: ANN401 (see below)
        """Tokenise a pair.

        Args:
            given: two texts, each a string or a list of tokens; a mapping with "premise" and "hypothesis" (or
                another pair of `HEADINGS`); or a string with a tab between the texts, or an empty one.
            tokenize: for strings.

        Raises:
            DataError: a string has no tab, or several.
            ConfigError: it is none of these.
        """
        if isinstance(given, str):
            texts: Sequence[Any] = given.split("\t") if given.strip() else ("", "")
            if len(texts) != 2:
                raise DataError(f"expected two texts with a tab between them, found {given!r:.60}")
        elif isinstance(given, Mapping):
            names = next((names for names in HEADINGS.texts if all(name in given for name in names)), ())
            texts = [given[name] for name in names]
        else:
            texts = given
        if not isinstance(texts, Sequence) or len(texts) != 2:
            raise ConfigError(
                f"expected a pair of texts, such as (premise, hypothesis), found {given!r:.60}; for several "
                "pairs pass a list of them"
            )
        return cls(*(TextInput.read(text, tokenize) for text in texts))

    @property
    def texts(self) -> list[list[str]]:
        """The tokens of both."""
        return [*self.premise.texts, *self.hypothesis.texts]


@dataclass(frozen=True)
class EntailmentPrediction:
    """A pair with its label or score.

    Attributes:
        premise: the first text (tokens that were given as a list are joined by blanks).
        hypothesis: the second text.
        premise_tokens: the tokens of the first text.
        hypothesis_tokens: those of the second.
        label: the most probable one; None for scores, and for a pair without tokens.
        scores: the probability of every label.
        score: the predicted number, where labels are numbers.
        alignment: for each token of the hypothesis, how much it attends to each token of the premise.
    """

    premise: str
    hypothesis: str
    premise_tokens: list[str]
    hypothesis_tokens: list[str]
    label: str | None
    scores: dict[str, float]
    score: float | None
    alignment: list[list[float]]

    def __str__(self) -> str:
        """Return a line for people: the label with its probability, or the score, and the texts."""
        said = "" if self.label is None else f"{self.label} ({self.scores[self.label]:.2f})"
        said = said if self.score is None else f"{self.score:.2f}"
        return f"{said}\t{self.premise}\t{self.hypothesis}".rstrip("\t")

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, with probabilities rounded to four places."""
        return plain_data(self)

    def draw(self, path: str | Path) -> None:
        """Draw the alignment: a row for each token of the hypothesis, a column for each of the premise."""
        rows, columns = self.hypothesis_tokens, self.premise_tokens
        if not rows or not columns:
            raise DataError("a text without tokens has no alignment to draw; give both texts")
        width, height = (min(2.0 + 0.3 * len(tokens), _MOST_INCHES) for tokens in (columns, rows))
        with drawing(Path(path), width=width + 1, height=height) as figure:
            axes = figure.subplots()
            image = axes.imshow(self.alignment, vmin=0, vmax=1, cmap="Blues", aspect="auto")
            upright = max(map(len, columns)) <= 2  # as Chinese characters are
            axes.set_xticks(range(len(columns)), columns, rotation=0 if upright else 90)
            axes.set_yticks(range(len(rows)), rows)
            axes.set(xlabel="premise", ylabel="hypothesis", title=str(self).partition("\t")[0])
            figure.colorbar(image, label="attention")
