"""Scores of intents with slots: slot F1, intent accuracy, and their mean."""

from collections.abc import Sequence

from elmokit.tasks.classifier import count_labels, label_pairs
from elmokit.tasks.core import Scores, scores_from_counts
from elmokit.tasks.intent.data import IntentText
from elmokit.tasks.intent.head import PredictedIntent
from elmokit.tasks.tagger import TaggerTask, count_tags, span_values, tag_pairs


def score_intents(
    slots: TaggerTask, examples: Sequence[IntentText], outputs: Sequence[PredictedIntent], *, strict: bool
) -> Scores:
    """Return the mean of slot F1 and intent accuracy, and both; `slots` is the tagging part of the task."""
    gold, tags = [example.slots for example in examples], [output.slots for output in outputs]
    counted = count_tags(gold, tags, slots.learnt_scheme, strict=strict)
    pairs = tag_pairs(gold, tags, slots.learnt_scheme)
    others = {} if slots.scheme == "plain" else span_values(counted, pairs)
    intents, labels = [example.intent for example in examples], [output.intent for output in outputs]
    return scores_from_counts(
        {"slot_f1": counted, "intent_accuracy": count_labels(intents, labels)},
        others=others,
        main="score",
        pairs=label_pairs(intents, labels),
    )
