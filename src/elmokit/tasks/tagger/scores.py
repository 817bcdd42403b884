"""Scores of tags: entities by conlleval's rules (Tjong Kim Sang and Buchholz 2000), or single tags."""

from collections.abc import Sequence

from elmokit.tasks.core import Counted, Items, count_items
from elmokit.tasks.tagger.data import TaggedText
from elmokit.tasks.tagger.head import PredictedTags
from elmokit.tasks.tagger.schemes import Scheme, find_spans, kind_of, write_spans


def count_tags(
    examples: Sequence[TaggedText], outputs: Sequence[PredictedTags], scheme: Scheme, *, strict: bool
) -> Counted:
    """Count spans (`strict`: only those with legal tags throughout), or tags if the scheme has no spans."""
    gold = [_items(example.tags, scheme, strict=False) for example in examples]
    return count_items(gold, [_items(output.tags, scheme, strict=strict) for output in outputs])


def tag_pairs(
    examples: Sequence[TaggedText], outputs: Sequence[PredictedTags], scheme: Scheme
) -> list[tuple[str, str]]:
    """Return for each token the true and the predicted kind."""
    return [
        (kind_of(true, scheme), kind_of(predicted, scheme))
        for example, output in zip(examples, outputs, strict=True)
        for true, predicted in zip(example.tags, output.tags, strict=True)
    ]


def span_values(counted: Counted, pairs: Sequence[tuple[str, str]]) -> dict[str, float]:
    """Return the scores of spans beside F1."""
    precision, recall, _ = counted.total()
    accuracy = sum(true == predicted for true, predicted in pairs) / max(1, len(pairs))
    return {"precision": precision, "recall": recall, "token_accuracy": accuracy}


def _items(tags: Sequence[str], scheme: Scheme, *, strict: bool) -> Items:
    if scheme == "plain":
        return set(enumerate(tags))
    spans = find_spans(tags)
    if strict:
        written = write_spans(spans, len(tags), scheme)
        spans = [
            span for span in spans if written[span.start : span.end] == list(tags[span.start : span.end])
        ]
    return {((span.start, span.end), span.label) for span in spans}
