"""How good the decisions are.

Everything is counted as items found: an entity (its place and kind), the tag of a token, the label of a text.
With tp right ones among p found and g that there are,

    precision = tp / p,   recall = tp / g,   F1 = 2 tp / (p + g).

Where exactly one item is decided for each place, as for parts of speech or classes, F1 is the accuracy.
Entities are counted by conlleval's rules (Tjong Kim Sang and Buchholz 2000).
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.tasks.decisions import Decision
from elmokit.tasks.examples import Example, kind_of
from elmokit.tasks.model import TaskConfig
from elmokit.tasks.schemes import Scheme, find_spans, write_spans

Items = set[tuple[Hashable, str]]  # where, and what
Counts = npt.NDArray[np.int64]

_RESAMPLES = 1000
_AT_ONCE = 2_000_000  # numbers of a block of resamples


@dataclass(frozen=True)
class ClassScore:
    """One label: how many there are, and how well they are found."""

    label: str
    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True)
class Scores:
    """The result of an evaluation.

    Attributes:
        main: name of the score that decides.
        values: every score by its name.
        interval: within which the main score lies with 95 % (bootstrap over the examples).
        classes: each label by itself.
        labels: the rows (what is right) and columns (what was decided) of `confusion`.
        confusion: counts, of tokens for a tagger; empty where a text may have several labels.
    """

    main: str
    values: dict[str, float]
    interval: tuple[float, float]
    classes: list[ClassScore]
    labels: list[str] = field(default_factory=list)
    confusion: list[list[int]] = field(default_factory=list)

    @property
    def value(self) -> float:
        """The main score."""
        return self.values[self.main]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def score(
    config: TaskConfig, examples: Sequence[Example], decisions: Sequence[Decision], *, strict: bool = False
) -> Scores:
    """Hold decisions against examples whose tags are in the scheme that was learnt.

    Args:
        config: of the model that decided.
        examples: what is right.
        decisions: what was decided, in the same order.
        strict: count an entity only if its tags are those of the scheme from begin to end.
    """
    parts: dict[str, Counted] = {}
    others: dict[str, float] = {}
    pairs: list[tuple[str, str]] = []
    is_intent = config.task == "intent"
    if config.task != "classifier":
        scheme = config.learnt_scheme
        right = [_span_items(example.tags, scheme, strict=False) for example in examples]
        found = [_span_items(decision.tags, scheme, strict=strict) for decision in decisions]
        spans = count_items(right, found)
        parts["slot_f1" if is_intent else "accuracy" if scheme == "plain" else "f1"] = spans
        pairs = _tag_pairs(examples, decisions, scheme)
        if scheme != "plain":
            others |= {"precision": spans.precision(), "recall": spans.recall()}
            others["token_accuracy"] = sum(a == b for a, b in pairs) / max(1, len(pairs))
    if config.task != "tagger":
        several = config.settings.head.multi_label
        name = "intent_accuracy" if is_intent else "micro_f1" if several else "accuracy"
        parts[name] = count_items(_label_items(examples), _label_items(decisions))
        if not several:
            pairs = [(e.labels[0], d.labels[0]) for e, d in zip(examples, decisions, strict=True)]
    values = {name: part.f1() for name, part in parts.items()}
    main = "score" if is_intent else next(iter(values))
    classes = [one for part in parts.values() for one in part.classes()]
    others["macro_f1"] = sum(one.f1 for one in classes) / max(1, len(classes))
    labels, confusion = _confusion(pairs)
    return Scores(
        main=main,
        values={main: sum(values.values()) / len(values)} | values | others,
        interval=bootstrap([part.examples for part in parts.values()]),
        classes=classes,
        labels=labels,
        confusion=confusion,
    )


@dataclass(frozen=True)
class Counted:
    """Items right, found and there: (n, 3) for each example, and for each label."""

    examples: Counts
    labels: dict[str, tuple[int, int, int]]

    def f1(self) -> float:
        """Over all items."""
        right, found, there = self.examples.sum(axis=0).tolist()
        return _f1(right, found, there)

    def precision(self) -> float:
        """Share of right ones among those found."""
        right, found, _ = self.examples.sum(axis=0).tolist()
        return float(right / max(1, found))

    def recall(self) -> float:
        """Share of those there that were found."""
        right, _, there = self.examples.sum(axis=0).tolist()
        return float(right / max(1, there))

    def classes(self) -> list[ClassScore]:
        """Each label by itself."""
        return [
            ClassScore(label, right / max(1, found), right / max(1, there), _f1(right, found, there), there)
            for label, (right, found, there) in sorted(self.labels.items())
        ]


def count_items(right: Sequence[Items], found: Sequence[Items]) -> Counted:
    """Count what is right, found and there in each example and of each label."""
    examples = [(len(a & b), len(b), len(a)) for a, b in zip(right, found, strict=True)]
    counters = [
        Counter(label for items in sets for _, label in items)
        for sets in ([a & b for a, b in zip(right, found, strict=True)], found, right)
    ]
    labels = {label for counter in counters for label in counter}
    by_label = {label: (counters[0][label], counters[1][label], counters[2][label]) for label in labels}
    return Counted(np.array(examples, np.int64).reshape(-1, 3), by_label)


def bootstrap(parts: Sequence[Counts], *, seed: int = 0) -> tuple[float, float]:
    """The 95 % interval of the mean F1 of the parts, by drawing as many examples again and again.

    Args:
        parts: (n, 3) items right, found and there, for each example.
        seed: of the draws.
    """
    random = np.random.default_rng(seed)
    count = len(parts[0])
    if not count:
        return 0.0, 0.0
    drawn: list[npt.NDArray[np.float64]] = []
    block = max(1, min(_RESAMPLES, _AT_ONCE // count))
    while sum(map(len, drawn)) < _RESAMPLES:
        times = random.multinomial(count, np.full(count, 1 / count), size=block)  # (block, n)
        sums = [(times @ part).astype(np.float64) for part in parts]  # (block, 3) each
        drawn.append(np.mean([2 * s[:, 0] / np.maximum(1, s[:, 1] + s[:, 2]) for s in sums], axis=0))
    low, high = np.quantile(np.concatenate(drawn), [0.025, 0.975])
    return float(low), float(high)


def _f1(right: int, found: int, there: int) -> float:
    return 2 * right / (found + there) if found + there else 0.0


def _span_items(tags: Sequence[str], scheme: Scheme, *, strict: bool) -> Items:
    if scheme == "plain":
        return set(enumerate(tags))
    spans = find_spans(tags)
    if strict:
        written = write_spans(spans, len(tags), scheme)
        spans = [
            span for span in spans if written[span.start : span.end] == list(tags[span.start : span.end])
        ]
    return {((span.start, span.end), span.label) for span in spans}


def _tag_pairs(
    examples: Sequence[Example], decisions: Sequence[Decision], scheme: Scheme
) -> list[tuple[str, str]]:
    """For each token the kind that is right and the one that was decided."""
    return [
        (kind_of(right, scheme), kind_of(decided, scheme))
        for example, decision in zip(examples, decisions, strict=True)
        for right, decided in zip(example.tags, decision.tags, strict=True)
    ]


def _label_items(items: Sequence[Example] | Sequence[Decision]) -> list[Items]:
    return [{(0, label) for label in item.labels} for item in items]


def _confusion(pairs: list[tuple[str, str]]) -> tuple[list[str], list[list[int]]]:
    labels = sorted({label for pair in pairs for label in pair})
    counts = Counter(pairs)
    return labels, [[counts[right, decided] for decided in labels] for right in labels]
