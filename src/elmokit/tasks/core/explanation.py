"""What an explanation says: words, layers and training examples behind one decision, and how it is shown."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from elmokit.base import Shade, shaded_for_terminal, shaded_html
from elmokit.tasks.core.text_input import plain_data

_STRONGEST = 8  # words that are listed for people


@dataclass(frozen=True)
class WordContribution:
    """What a word contributes to a decision: positive speaks for it, negative against it.

    Attributes:
        text: the word.
        part: which of the texts it stands in.
        start, end: its place in that text.
        contribution: in the unit of `Explanation.evidence`.
    """

    text: str
    part: int
    start: int
    end: int
    contribution: float


@dataclass(frozen=True)
class LayerContribution:
    """The layers of an encoder, lowest first: their weights in the mix and what they contribute."""

    encoder: str
    place: str
    weights: list[float]
    contributions: list[float]


@dataclass(frozen=True)
class NearExample:
    """A labelled place in the training data that is like the one in question.

    Attributes:
        label: its label.
        similarity: the cosine of what the head read there and here, both without what all places share.
        text: the example; the tokens with that label, if they are not all of it, are in brackets.
        where: file and line.
    """

    label: str
    similarity: float
    text: str
    where: str


@dataclass(frozen=True)
class Explanation:
    """One decision and what it is made of.

    Attributes:
        label: what was decided.
        of: what else the decision belongs to, such as the predicate of a role; often "".
        span: the words that it is about; "" if it is about the whole text.
        probability: of the decision; None where a score is predicted.
        unit: of the numbers: "log-odds", log p / (1 - p), or "score".
        evidence: what speaks for the decision; positive log-odds mean that it is likelier than not.
        without: what would, if no word had a vector.
        error: how far the contributions are from evidence - without, which they make up.
        texts: as given.
        words: the contribution of every word.
        layers: the contribution of every layer of every encoder.
        examples: the nearest training examples, if the training data were given.
    """

    label: str
    of: str
    span: str
    probability: float | None
    unit: str
    evidence: float
    without: float
    error: float
    texts: list[str]
    words: list[WordContribution]
    layers: list[LayerContribution]
    examples: list[NearExample] = field(default_factory=list)

    def strongest(self, count: int = _STRONGEST) -> list[WordContribution]:
        """Return the words that contribute most, for or against the decision."""
        return sorted(self.words, key=lambda word: -abs(word.contribution))[:count]

    def title(self) -> str:
        """Return the decision in a line."""
        shown = f"{self.span} → {self.label}" if self.span else self.label
        shown += f" of {self.of}" if self.of else ""
        shown += "" if self.probability is None else f" ({self.probability:.2f})"
        return f"{shown}: {self.unit} {self.evidence:+.2f}, without any word {self.without:+.2f}"

    def __str__(self) -> str:
        """Return the decision, the words that count most, the layers and the examples, for people."""
        return self._report(self.texts)

    def coloured(self) -> str:
        """Return the same for a terminal, the words on blue (for) and orange (against)."""
        return self._report([shaded_for_terminal(*part) for part in self._shaded()])

    def html(self) -> str:
        """Return the same as HTML without a page around it."""
        texts = "".join(f"<p>{shaded_html(*part)}</p>" for part in self._shaded())
        rows = "".join(
            f"<tr><td>{escape(one.encoder)}, {one.place}</td><td>{_numbers(one.weights, '.3f')}</td>"
            f"<td>{_numbers(one.contributions, '+.2f')}</td></tr>"
            for one in self.layers
        )
        table = f"<table><tr><th>layers</th><th>weights</th><th>contributions</th></tr>{rows}</table>"
        near = "".join(
            f"<li>{one.similarity:.2f} <b>{escape(one.label)}</b> {escape(one.text)}</li>"
            for one in self.examples
        )
        examples = f"<p>nearest training examples</p><ul>{near}</ul>" if near else ""
        return f"<section><h3>{escape(self.title())}</h3>{texts}{table}{examples}</section>"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, with numbers rounded to four places."""
        return plain_data(self)

    def _shaded(self) -> list[tuple[str, list[Shade]]]:
        most = max((abs(word.contribution) for word in self.words), default=0.0) or 1.0
        shades: list[list[Shade]] = [[] for _ in self.texts]
        for word in self.words:
            note = f"{word.contribution:+.2f}"
            shades[word.part].append(Shade(word.start, word.end, word.contribution / most, note))
        return list(zip(self.texts, shades, strict=True))

    def _report(self, texts: Sequence[str]) -> str:
        lines = [self.title(), *(f"  {text}" for text in texts)]
        lines += [f"{word.contribution:+8.2f}  {word.text}" for word in self.strongest()]
        for one in self.layers:
            lines.append(
                f"  layers from below, {one.place}: weights {_numbers(one.weights, '.3f')}  contributions "
                f"{_numbers(one.contributions, '+.2f')}  {one.encoder}"
            )
        lines += ["  nearest training examples"] if self.examples else []
        lines += [f"{one.similarity:8.2f}  {one.label}  {one.text}" for one in self.examples]
        return "\n".join(lines)


def _numbers(values: Sequence[float], form: str) -> str:
    return "  ".join(format(value, form) for value in values)
