"""The head that labels pairs of entities.

The task's RNN reads a text once. For each pair of entities (e, f) the head reads the words around them again,

    x_t = A h_t + P[place of t before, in or after e] + Q[the same for f],        y = x + BiLSTM(x)

where places are distances in words, the larger ones together. The vector of the pair has the maxima of y over
the pieces of the text (first entity, second entity, between them, around them), an attention-weighted sum
over all words, and what kinds of things e and f are; a layer with tanh and a linear one turn it into the
scores of the labels. Where entities have several mentions, the two nearest are read.
Shapes: S tokens of the batch, R pairs, Q words around all pairs, M numbers of x.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.base import bounded, group_until
from elmokit.kernels import Dropout, bidirectional_lstm
from elmokit.model import Packing
from elmokit.tasks.core import HeadSettings, Hidden, TaskSettings, TextPooling
from elmokit.tasks.relations.data import MarkedEntity, Place, RelationText

_TOGETHER = 16_384  # words around pairs that are decoded together
_STEPS = (1, 2, 3, 4, 5, 7, 10, 15, 25)  # distances from which on a new row of P and Q is taken
_PLACES = 2 * len(_STEPS) + 1
_PIECES = 4
_KIND = 16  # numbers for the kind of an entity


@dataclass(frozen=True, kw_only=True)
class RelationsHeadSettings(HeadSettings):
    """The settings of the head.

    Attributes:
        pair_rnn: size of each direction of the LSTM that reads the words around a pair.
        pair_layer: size of the layer below the scores of the labels.
        pair_dropout: rate before and after both.
        around: words before and after the two entities that are read.
        unknown_kind: share of entities whose kind is hidden in training, so that the model can also be used
            with kinds that it has not seen.
        no_relation: the label of pairs without a relation; None finds it by its name: none, Other, unknown,
            no_relation, NA.
        main: the score that decides about early stopping.
    """

    pair_rnn: int = bounded(100, least=1, most=100_000)
    pair_layer: int = bounded(200, least=1, most=100_000)
    pair_dropout: float = bounded(0.3, least=0, most=1)
    around: int = bounded(15, least=0, most=100_000)
    unknown_kind: float = bounded(0.1, least=0, most=1)
    no_relation: str | None = None
    main: Literal["f1", "macro_f1", "accuracy"] = "f1"


@dataclass(frozen=True, kw_only=True)
class RelationsSettings(TaskSettings):
    """All settings of a model of relations."""

    head: RelationsHeadSettings = field(default_factory=RelationsHeadSettings)


@dataclass(frozen=True)
class PredictedPair:
    """Two entities by their numbers, the most probable label, and the probability of each label."""

    head: int
    tail: int
    label: str
    scores: dict[str, float] = field(default_factory=dict)


class _Pair(NamedTuple):
    """A pair in a batch: its item, the entities, the words to be read and the mentions among these.

    `start` and `end` count tokens of the batch, `spans` those from `start`.
    """

    row: int
    entities: tuple[int, int]
    kinds: tuple[str, str]
    start: int
    end: int
    spans: tuple[Place, Place]


class RelationsHead(nn.Module):
    """Labels for pairs of entities.

    Args:
        dim: size of the vectors.
        labels: the label set.
        kinds: of entities; the first stands for those that are not known.
        settings: of the head.
        weights: (K,) weight of each label in the loss.
    """

    weights: Tensor | None

    def __init__(
        self,
        dim: int,
        labels: Sequence[str],
        kinds: Sequence[str],
        settings: RelationsHeadSettings,
        weights: Tensor | None = None,
    ) -> None:
        super().__init__()
        size = 2 * settings.pair_rnn
        self.labels, self.settings = list(labels), settings
        self._ids = {label: number for number, label in enumerate(labels)}
        self._kinds = {kind: number for number, kind in enumerate(kinds)}
        self.of_token = nn.Linear(dim, size)
        self.places = nn.ModuleList(nn.Embedding(_PLACES, size) for _ in range(2))
        for table in self.places:
            nn.init.normal_(table.weight, std=dim**-0.5)  # type: ignore[arg-type]
        self.kinds = nn.Embedding(len(kinds), _KIND)
        self.dropout = Dropout(settings.pair_dropout)
        self.lstm = nn.LSTM(size, settings.pair_rnn, bidirectional=True)
        self.attention = TextPooling("attention", size)
        self.layer = nn.Linear((_PIECES + 1) * size + 2 * _KIND, settings.pair_layer)
        self.linear = nn.Linear(settings.pair_layer, len(labels))
        self.register_buffer("weights", weights, persistent=False)

    def loss(self, hidden: Hidden, examples: Sequence[RelationText]) -> Tensor:
        """Return the mean loss of a pair."""
        pairs = list(_pairs(hidden, examples, self.settings.around))
        if not pairs:
            return hidden.vectors.sum() * 0.0
        logits = self._logits(hidden, pairs)  # (R, K)
        gold = [self._ids[pair.label] for example in examples for pair in example.pairs]
        return functional.cross_entropy(logits, torch.tensor(gold, device=logits.device), self.weights)

    def decode(self, hidden: Hidden, items: Sequence[Any]) -> list[list[PredictedPair]]:
        """Return the most probable label of each pair."""
        found: list[list[PredictedPair]] = [[] for _ in items]
        pairs = _pairs(hidden, items, self.settings.around)
        for group in group_until(pairs, lambda pair: pair.end - pair.start, _TOGETHER):
            for pair, row in zip(group, self._logits(hidden, group).softmax(dim=1).tolist(), strict=True):
                scores = dict(zip(self.labels, row, strict=True))
                label = max(scores, key=scores.__getitem__)
                found[pair.row].append(PredictedPair(*pair.entities, label, scores))
        return found

    def _logits(self, hidden: Hidden, pairs: Sequence[_Pair]) -> Tensor:
        """Return the scores (R, K) of the labels of pairs."""
        device = hidden.vectors.device
        lengths = torch.tensor([pair.end - pair.start for pair in pairs])  # (R,)
        tokens = torch.cat([torch.arange(pair.start, pair.end) for pair in pairs]).to(device)  # (Q,)
        places = torch.cat(list(map(_places, pairs))).to(device)  # (Q, 2)
        x = self.of_token(hidden.vectors).index_select(0, tokens)  # (Q, M)
        for number, table in enumerate(self.places):
            x = x + table(places[:, number])
        y = x + bidirectional_lstm(self.lstm, self.dropout(x), Packing.of(lengths))
        pooled = torch.cat(
            [
                _maxima(y, places, lengths),
                self.attention(y, lengths),
                self.kinds(self._kind_numbers(pairs).to(device)).flatten(1),
            ],
            dim=1,
        )  # (R, 5 M + kinds)
        logits: Tensor = self.linear(self.dropout(torch.tanh(self.layer(self.dropout(pooled)))))
        return logits

    def _kind_numbers(self, pairs: Sequence[_Pair]) -> Tensor:
        """Return the numbers of the kinds of the two entities, (R, 2)."""
        numbers = torch.tensor([[self._kinds.get(kind, 0) for kind in pair.kinds] for pair in pairs])
        if self.training and self.settings.unknown_kind:
            seen = torch.rand(numbers.shape, generator=self.dropout.generator) >= self.settings.unknown_kind
            numbers = numbers * seen
        return numbers


def _pairs(hidden: Hidden, items: Sequence[Any], around: int) -> Iterator[_Pair]:
    """Yield the pairs of all items of a batch, with the words to be read."""
    counts = [sum(map(len, item.texts)) for item in items]
    starts = accumulate(counts, initial=0)
    for row, (first, count, item) in enumerate(zip(starts, counts, items, strict=False)):
        for pair in item.pairs:
            head, tail = item.entities[pair.head], item.entities[pair.tail]
            one, other = nearest_mentions(head, tail)
            start = max(0, min(one[0], other[0]) - around)
            end = min(count, max(one[1], other[1]) + around)
            spans = ((one[0] - start, one[1] - start), (other[0] - start, other[1] - start))
            kinds = (head.kind, tail.kind)
            yield _Pair(row, (pair.head, pair.tail), kinds, first + start, first + end, spans)


def nearest_mentions(head: MarkedEntity, tail: MarkedEntity) -> tuple[Place, Place]:
    """Return the mentions of two entities with the fewest words from one to the other.

    Example:
        >>> nearest_mentions(MarkedEntity(((0, 1), (8, 9))), MarkedEntity(((4, 6),)))
        ((8, 9), (4, 6))
    """
    options = ((one, other) for one in head.mentions for other in tail.mentions)
    return min(options, key=lambda pair: max(pair[0][0] - pair[1][1], pair[1][0] - pair[0][1]))


def _places(pair: _Pair) -> Tensor:
    """Return for each word that is read where it is to both mentions, (words, 2): see `_STEPS`."""
    words = torch.arange(pair.end - pair.start)
    steps = torch.tensor(_STEPS)
    columns = []
    for start, end in pair.spans:
        before, after = (start - words).clamp(min=0), (words - end + 1).clamp(min=0)
        signed = torch.bucketize(after, steps, right=True) - torch.bucketize(before, steps, right=True)
        columns.append(signed + len(_STEPS))
    return torch.stack(columns, dim=1)


def _maxima(y: Tensor, places: Tensor, lengths: Tensor) -> Tensor:
    """(Q, M), (Q, 2), (R,) → (R, 4 M): maxima over both entities, between and around them; zero if empty."""
    middle = len(_STEPS)
    signs = (places - middle).sign()  # (Q, 2)
    between = signs[:, 0] * signs[:, 1] < 0
    pieces = torch.where(between, 2, 3)
    pieces = torch.where(signs[:, 1] == 0, 1, pieces)
    pieces = torch.where(signs[:, 0] == 0, 0, pieces)
    rows = torch.repeat_interleave(torch.arange(len(lengths)), lengths).to(y.device)  # (Q,)
    index = (_PIECES * rows + pieces)[:, None].expand_as(y)
    maxima = y.new_zeros(_PIECES * len(lengths), y.shape[1])
    return maxima.scatter_reduce(0, index, y, "amax", include_self=False).reshape(len(lengths), -1)


def label_counts(examples: Iterable[RelationText]) -> list[list[str]]:
    """Return the labels of the pairs of each example."""
    return [[pair.label for pair in example.pairs] for example in examples]
