"""What a trained model says of one text, with the places in it."""

from dataclasses import asdict, dataclass
from typing import Any

from elmokit.tasks.decisions import Decision
from elmokit.tasks.schemes import Scheme, convert
from elmokit.text import Token


@dataclass(frozen=True)
class LabelledSpan:
    """A piece of the text, `text[start:end]`, and what it is."""

    text: str
    start: int
    end: int
    label: str
    probability: float


@dataclass(frozen=True)
class Prediction:
    """A text and what was found; what the task does not have is empty.

    Attributes:
        text: as given (tokens that were given apart are joined by blanks).
        tokens: what was read.
        offsets: where each token stands in the text.
        tags: one for each token, in the scheme of the training data.
        tag_probabilities: of each of them.
        spans: entities or slots.
        labels: of the whole text: the one that was chosen, or several.
        scores: the probability of every label.
    """

    text: str
    tokens: list[str]
    offsets: list[tuple[int, int]]
    tags: list[str]
    tag_probabilities: list[float]
    spans: list[LabelledSpan]
    labels: list[str]
    scores: dict[str, float]

    @classmethod
    def of(
        cls, text: str, tokens: list[Token], decision: Decision, *, learnt: Scheme, shown: Scheme
    ) -> "Prediction":
        """Give a decision its places, and its tags the scheme that is to be shown."""
        spans = []
        for span, probability in decision.spans:
            start, end = tokens[span.start].start, tokens[span.end - 1].end
            spans.append(LabelledSpan(text[start:end], start, end, span.label, probability))
        return cls(
            text=text,
            tokens=[token.text for token in tokens],
            offsets=[(token.start, token.end) for token in tokens],
            tags=convert(decision.tags, learnt, shown),
            tag_probabilities=decision.tag_probabilities,
            spans=spans,
            labels=decision.labels,
            scores=decision.scores,
        )

    @property
    def label(self) -> str | None:
        """The first label, which is the only one unless a text may have several."""
        return self.labels[0] if self.labels else None

    def __str__(self) -> str:
        """Return a line for people: labels, and the text with its spans in brackets or with its tags."""
        shown, at = "", 0
        for span in self.spans:
            shown += f"{self.text[at : span.start]}[{span.label} {span.text}]"
            at = span.end
        shown += self.text[at:]
        if not self.spans and set(self.tags) - {"O"}:  # of single tokens, such as parts of speech
            shown = " ".join(f"{token}/{tag}" for token, tag in zip(self.tokens, self.tags, strict=True))
        labels = ", ".join(f"{label} ({self.scores[label]:.2f})" for label in self.labels)
        return f"{labels}\t{shown}" if self.scores else shown

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, without what the task does not have; probabilities to four places."""
        left_out = set() if self.tags or not self.tokens else {"tags", "tag_probabilities", "spans"}
        left_out |= set() if self.scores else {"labels", "scores"}
        return {name: _rounded(value) for name, value in asdict(self).items() if name not in left_out}


def _rounded(value: Any) -> Any:  # noqa: ANN401 (plain data)
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list) else value
