"""What a tagger says about one text."""

from dataclasses import dataclass
from typing import Any

from elmokit.tasks.core import TextInput, plain_data
from elmokit.tasks.tagger.head import PredictedTags
from elmokit.tasks.tagger.schemes import OUTSIDE, Scheme, convert


@dataclass(frozen=True)
class LabelledSpan:
    """A part of the text, `text[start:end]`, and its label."""

    text: str
    start: int
    end: int
    label: str
    probability: float


@dataclass(frozen=True)
class TaggerPrediction:
    """A text with its tags and spans.

    Attributes:
        text: as given (tokens that were given as a list are joined by blanks).
        tokens: of the text.
        offsets: start and end of each token in the text.
        tags: one for each token, in the scheme of the training data.
        tag_probabilities: of each tag.
        spans: entities or slots.
    """

    text: str
    tokens: list[str]
    offsets: list[tuple[int, int]]
    tags: list[str]
    tag_probabilities: list[float]
    spans: list[LabelledSpan]

    def __str__(self) -> str:
        """Return a line for people: the text with its spans in brackets, or with a tag for each token."""
        if not self.spans and set(self.tags) - {OUTSIDE}:
            return " ".join(f"{token}/{tag}" for token, tag in zip(self.tokens, self.tags, strict=True))
        shown, at = "", 0
        for span in self.spans:
            shown += f"{self.text[at : span.start]}[{span.label} {span.text}]"
            at = span.end
        return shown + self.text[at:]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, with probabilities rounded to four places."""
        return plain_data(self)


def tag_fields(given: TextInput, output: PredictedTags, learnt: Scheme, shown: Scheme) -> dict[str, Any]:
    """Return the fields of a `TaggerPrediction`, with the tags converted to the scheme to show."""
    spans = []
    for span, probability in output.spans:
        start, end = given.tokens[span.start].start, given.tokens[span.end - 1].end
        spans.append(LabelledSpan(given.text[start:end], start, end, span.label, probability))
    return given.fields() | {
        "tags": convert(output.tags, learnt, shown),
        "tag_probabilities": output.probabilities,
        "spans": spans,
    }
