"""Tagging: labels for spans (entities, slots, chunks) or for single tokens (parts of speech)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from elmokit.errors import ConfigError
from elmokit.tasks.core import (
    Decision,
    Scores,
    TaskModel,
    TextInput,
    by_frequency,
    check_labels,
    class_weights,
    scores_from_counts,
    warn_of_labels,
)
from elmokit.tasks.tagger.data import FORMATS, TaggedText, json_tags, scheme_of, tagged_text
from elmokit.tasks.tagger.head import PredictedTags, TaggerHead, TaggerHeadSettings, TaggerSettings, TagRun
from elmokit.tasks.tagger.multi_head import RelatedEntities, read_multi_head
from elmokit.tasks.tagger.prediction import (
    LabelledSpan,
    TaggerPrediction,
    labelled_spans,
    tag_decisions,
    tag_fields,
)
from elmokit.tasks.tagger.schemes import OUTSIDE, Scheme, find_spans, is_legal, kind_of, write_spans
from elmokit.tasks.tagger.scores import count_tags, span_values, tag_pairs
from elmokit.text import Run

__all__ = [
    "OUTSIDE", "LabelledSpan", "PredictedTags", "RelatedEntities", "Scheme", "TagRun", "TaggedText",
    "Tagger", "TaggerHead", "TaggerHeadSettings", "TaggerPrediction", "TaggerSettings",
    "TaggerTask", "count_tags", "find_spans", "is_legal", "json_tags", "kind_of", "labelled_spans",
    "read_multi_head", "span_values", "tag_decisions", "tag_fields",
    "tag_pairs", "tagged_text",
]  # fmt: skip


@dataclass(frozen=True)
class TaggerTask:
    """Tagging with a known tag set; see `Task`.

    Attributes:
        settings: of encoders, head and training.
        tags: in the scheme that is learnt, the most frequent first.
        scheme: the tag scheme of the training data.
    """

    name = "tagger"
    formats = FORMATS
    read_input = staticmethod(TextInput.read)
    settings_type = TaggerSettings

    settings: TaggerSettings
    tags: tuple[str, ...] = ()
    scheme: Scheme = "plain"

    @property
    def learnt_scheme(self) -> Scheme:
        """The scheme of `tags`."""
        return "plain" if self.scheme == "plain" else self.settings.head.scheme

    @classmethod
    def fit(
        cls, settings: TaggerSettings, examples: Sequence[TaggedText]
    ) -> tuple["TaggerTask", list[TaggedText]]:
        """Find the scheme and the tags of the training data."""
        if settings.training.class_weights and settings.head.crf:
            raise ConfigError(
                "class_weights need a prediction for each token, a CRF scores whole sequences; set "
                "head.crf=false"
            )
        task = cls(settings, scheme=scheme_of(examples))
        converted = task._converted(examples)
        warn_of_labels([task._labels(example.tags) for example in converted], examples[0].where)
        return replace(task, tags=by_frequency(example.tags for example in converted)), converted

    def prepare(self, examples: Sequence[TaggedText], *, allow_unseen: bool) -> list[TaggedText]:
        """Convert the tags to the scheme that is learnt."""
        scheme_of(examples, self.scheme)
        converted = self._converted(examples)
        if not allow_unseen:
            known = [OUTSIDE, *map(self._kind, self.tags)]
            check_labels(((e.where, map(self._kind, e.tags)) for e in converted), known)
        return converted

    def make_head(self, dim: int, examples: Sequence[TaggedText] = ()) -> TaggerHead:
        """Build a linear layer with or without a CRF."""
        weighted = examples if self.settings.training.class_weights else ()
        weights = class_weights((example.tags for example in weighted), self.tags)
        return TaggerHead(dim, self.tags, self.learnt_scheme, crf=self.settings.head.crf, weights=weights)

    def score(
        self, examples: Sequence[TaggedText], outputs: Sequence[PredictedTags], *, strict: bool = False
    ) -> Scores:
        """Return F1, precision and recall of spans, or the accuracy of single tags."""
        scheme = self.learnt_scheme
        counted = count_tags(examples, outputs, scheme, strict=strict)
        pairs = tag_pairs(examples, outputs, scheme)
        if scheme == "plain":
            return scores_from_counts({"accuracy": counted}, pairs=pairs)
        return scores_from_counts({"f1": counted}, others=span_values(counted, pairs), pairs=pairs)

    def describe(self, example: TaggedText, output: PredictedTags) -> tuple[str, str]:
        """Return the true and the predicted spans with their places, or the tags of all tokens."""
        return self._in_words(example.tokens, example.tags), self._in_words(example.tokens, output.tags)

    def present(self, item: TextInput, output: PredictedTags) -> TaggerPrediction:
        """Return tags and spans with their places in the text."""
        return TaggerPrediction(**tag_fields(item, output, self.learnt_scheme, self.scheme))

    def parts(self, item: TextInput) -> list[TextInput]:
        """Return the text."""
        return [item]

    def decisions(
        self, item: TextInput, output: PredictedTags, *, label: str | None, at: Run | None
    ) -> list[Decision]:
        """Return the spans that were found, or the label that is asked for at a token."""
        return tag_decisions(output, self.tags, self.learnt_scheme, label=label, at=at)

    def labelled(self, example: TaggedText) -> list[tuple[str, Run | None]]:
        """Return the spans, or the tags of all tokens."""
        return labelled_spans(example.tags, self.learnt_scheme)

    def _kind(self, tag: str) -> str:
        return kind_of(tag, self.learnt_scheme)

    def _labels(self, tags: Sequence[str]) -> list[str]:
        """Return one label for each span and for each token outside of all, or the plain tags."""
        if self.scheme == "plain":
            return list(tags)
        return [span.label for span in find_spans(tags)] + [tag for tag in tags if tag == OUTSIDE]

    def _converted(self, examples: Sequence[TaggedText]) -> list[TaggedText]:
        """Convert tags, also where the scheme stays: slips in it are rewritten as conlleval reads them."""
        if self.scheme == "plain":
            return list(examples)
        scheme = self.learnt_scheme
        return [
            replace(e, tags=tuple(write_spans(find_spans(e.tags), len(e.tags), scheme))) for e in examples
        ]

    def _in_words(self, tokens: Sequence[str], tags: Sequence[str]) -> str:
        if self.scheme == "plain":
            return " | ".join(f"{tag}:{token}" for token, tag in zip(tokens, tags, strict=True))
        return " | ".join(
            f"{span.label}:{' '.join(tokens[span.start : span.end])}@{span.start}"
            for span in find_spans(tags)
        )


class Tagger(TaskModel[TaggedText, PredictedTags, TaggerPrediction]):
    """A model that labels spans (entities, slots) or single tokens (parts of speech).

    Example:
        >>> Tagger.load("ner").predict("Ada Lovelace lived in London.").spans          # doctest: +SKIP
        [LabelledSpan(text='Ada Lovelace', start=0, end=12, label='PER', probability=0.98), ...]
    """

    task_type = TaggerTask


MODEL = Tagger
