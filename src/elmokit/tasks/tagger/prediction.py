"""What a tagger says about one text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from elmokit.errors import ConfigError
from elmokit.tasks.core import Decision, TextInput, choose, overlap, plain_data
from elmokit.tasks.tagger.head import PredictedTags, TagRun
from elmokit.tasks.tagger.schemes import OUTSIDE, Scheme, Span, convert, find_spans, kind_of
from elmokit.text import Run


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


def tag_decisions(
    output: PredictedTags, known: Sequence[str], scheme: Scheme, *, label: str | None, at: Run | None
) -> list[Decision]:
    """Return the spans that were found, or all tokens where tags are plain; or what is asked for.

    Args:
        output: of the head.
        known: the tag set.
        scheme: of the tags.
        label: of the decision; with `at`, it may be one that was not chosen.
        at: the tokens.
    """
    spans = [span for span, _ in output.spans]
    if scheme == "plain":
        spans = [Span(place, place + 1, tag) for place, tag in enumerate(output.tags)]
    made = [_decision(span, [[tag] for tag in output.tags[span.start : span.end]]) for span in spans]
    there = [one for one in made if at is not None and one.place is not None and overlap(one.place, at)]
    if at is None or any(label in (None, one.label) for one in there):
        return choose(made, label, at)
    label = label or OUTSIDE
    tags = [tag for tag in known if kind_of(tag, scheme) == label]
    if not tags:
        labels = ", ".join(sorted({kind_of(tag, scheme) for tag in known}))
        raise ConfigError(f"{label!r} is none of the model's labels, {labels}")
    return [_decision(Span(*at, label), [tags] * (at[1] - at[0]))]


def _decision(span: Span, tags: Sequence[Sequence[str]]) -> Decision:
    run = TagRun(span.start, tuple(map(tuple, tags)))
    return Decision(span.label, run, (span.start, span.end))


def labelled_spans(tags: Sequence[str], scheme: Scheme) -> list[tuple[str, Run | None]]:
    """Return the labels of all spans with their tokens, or those of all tokens where tags are plain."""
    if scheme == "plain":
        return [(tag, (place, place + 1)) for place, tag in enumerate(tags)]
    return [(span.label, (span.start, span.end)) for span in find_spans(tags)]
