"""The head that finds predicates and labels their roles.

The task's RNN reads a sentence once, whatever the number of its predicates. For each predicate p the head
reads it again,

    x_t = A h_t + B h_p + c·[t = p],        then layers  y_t = g_t ∘ BiLSTM(x)_t + (1 - g_t) ∘ x_t,
    g_t = σ(W x_t + b)

and a CRF gives the tags (He et al. 2017 and Shi and Lin 2019, with gates beside the LSTM and not inside it,
so that the fast kernel serves it). Whether a token is a predicate is σ(v·h_t + d). Shapes: S tokens of the
batch, R predicates, Q tokens of all sentences once for each of their predicates, N size of a direction.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.base import bounded, group_until
from elmokit.kernels import Dropout, bidirectional_lstm
from elmokit.model import Packing
from elmokit.tasks.core import HeadSettings, Hidden, TaskSettings
from elmokit.tasks.roles.data import FramedSentence
from elmokit.tasks.tagger import PredictedTags, TaggerHead, TagRun

_TOGETHER = 16_384  # tokens, once for each predicate, that are decoded together


@dataclass(frozen=True, kw_only=True)
class RolesHeadSettings(HeadSettings):
    """The settings of the head.

    Attributes:
        dropout: rate before and after the LSTM that reads the sentence.
        frame_rnn: size of each direction of the LSTM layers that read the sentence for a predicate.
        frame_layers: how many of them there are.
        frame_dropout: rate before each of them and after the last.
    """

    dropout: float = bounded(0.4, least=0, most=1)
    frame_rnn: int = bounded(200, least=1, most=100_000)
    frame_layers: int = bounded(2, least=1, most=100)
    frame_dropout: float = bounded(0.2, least=0, most=1)


@dataclass(frozen=True, kw_only=True)
class RolesSettings(TaskSettings):
    """All settings of a model of semantic roles."""

    head: RolesHeadSettings = field(default_factory=RolesHeadSettings)


@dataclass(frozen=True)
class PredictedFrame:
    """The roles around one predicate.

    Attributes:
        predicate: its position.
        found: whether the model takes it for a predicate, also if it was given.
        probability: that it is one.
        tags: of all tokens of the sentence.
    """

    predicate: int
    found: bool
    probability: float
    tags: PredictedTags


class _Place(NamedTuple):
    """A predicate in a batch: its sentence, its position there, and where that sentence starts and ends."""

    row: int
    predicate: int
    start: int
    end: int


class HighwayLSTM(nn.Module):
    """One bidirectional LSTM layer with a highway around it."""

    def __init__(self, size: int, dropout: float) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.lstm = nn.LSTM(2 * size, size, bidirectional=True)
        self.gate = nn.Linear(2 * size, 2 * size)
        for name, bias in self.lstm.named_parameters():
            if name.startswith("bias_ih"):  # start with an open forget gate
                nn.init.constant_(bias[size : 2 * size], 1.0)

    def forward(self, x: Tensor, packing: Packing) -> Tensor:
        """(Q, 2N) → (Q, 2N)."""
        dropped = self.dropout(x)
        h = bidirectional_lstm(self.lstm, dropped, packing)
        return torch.lerp(x, h, torch.sigmoid(self.gate(dropped)))  # x + g · (h - x)


class RolesHead(nn.Module):
    """Predicates, and a tag for each token in the frame of each predicate.

    Args:
        dim: size of the vectors.
        tags: the tag set, BIO.
        settings: of the head.
    """

    def __init__(self, dim: int, tags: Sequence[str], settings: RolesHeadSettings) -> None:
        super().__init__()
        size = settings.frame_rnn
        self.finder = nn.Linear(dim, 1)
        self.of_token = nn.Linear(dim, 2 * size)
        self.of_predicate = nn.Linear(dim, 2 * size, bias=False)
        self.indicator = nn.Parameter(torch.randn(2 * size) * dim**-0.5)
        self.layers = nn.ModuleList(
            HighwayLSTM(size, settings.frame_dropout) for _ in range(settings.frame_layers)
        )
        self.dropout = Dropout(settings.frame_dropout)
        self.tagger = TaggerHead(2 * size, tags, "BIO", crf=True)

    def loss(self, hidden: Hidden, examples: Sequence[FramedSentence]) -> Tensor:
        """Return the mean loss of a tag plus that of the decision whether a token is a predicate."""
        places = list(_places(hidden, [example.predicates for example in examples]))
        logits = self.finder(hidden.vectors)[:, 0]  # (S,)
        gold = torch.zeros_like(logits)
        gold[[place.start + place.predicate for place in places]] = 1.0
        loss = functional.binary_cross_entropy_with_logits(logits, gold)
        if not places:
            return loss
        frames: list[Any] = [frame for example in examples for frame in example.frames]
        return loss + self.tagger.loss(self._read(hidden, places), frames)

    def decode(self, hidden: Hidden, items: Sequence[Any]) -> list[list[PredictedFrame]]:
        """Return the frames of the predicates that are found, and of those that are given with an item."""
        probabilities = torch.sigmoid(self.finder(hidden.vectors)[:, 0])  # (S,)
        shares = [one.tolist() for one in torch.split(probabilities, hidden.lengths.tolist())]
        wanted = [
            sorted({*(place for place, share in enumerate(row) if share > 0.5), *(item.predicates or ())})
            for row, item in zip(shares, items, strict=True)
        ]
        frames: list[list[PredictedFrame]] = [[] for _ in items]
        places = _places(hidden, wanted)
        for group in group_until(places, lambda place: place.end - place.start, _TOGETHER):
            decoded = self.tagger.decode(self._read(hidden, group), [])
            for place, tags in zip(group, decoded, strict=True):
                share = shares[place.row][place.predicate]
                frames[place.row].append(PredictedFrame(place.predicate, share > 0.5, share, tags))
        return frames

    def evidence(self, hidden: Hidden, items: Sequence[Any], key: tuple[int, TagRun | None]) -> Tensor:
        """Return the log-odds of a role around a predicate or, without a role, of the predicate, (B,)."""
        predicate, run = key
        if run is None:
            starts = hidden.lengths.cumsum(0) - hidden.lengths  # (B,)
            logits: Tensor = self.finder(hidden.vectors)[starts + predicate, 0]
            return logits
        places = list(_places(hidden, [(predicate,)] * len(items)))
        return self.tagger.evidence(self._read(hidden, places), items, run)

    def _read(self, hidden: Hidden, places: Sequence[_Place]) -> Hidden:
        """Read the sentence of each predicate again, and return vectors (Q, 2N)."""
        device = hidden.vectors.device
        lengths = torch.tensor([place.end - place.start for place in places])  # (R,)
        tokens = torch.cat([torch.arange(place.start, place.end) for place in places]).to(device)  # (Q,)
        predicates = torch.tensor([place.start + place.predicate for place in places])  # (R,)
        repeated = torch.repeat_interleave(predicates, lengths).to(device)  # (Q,)
        # The gradient of index_select takes a fraction of the time of that of x[tokens].
        x = self.of_token(hidden.vectors).index_select(0, tokens)  # (Q, 2N)
        x = x + self.of_predicate(hidden.vectors).index_select(0, repeated)
        x = x + (tokens == repeated)[:, None] * self.indicator
        packing = Packing.of(lengths)
        for layer in self.layers:
            x = layer(x, packing)
        return Hidden(self.dropout(x), lengths, packing)


def _places(hidden: Hidden, predicates: Sequence[Sequence[int]]) -> Iterator[_Place]:
    """Yield all predicates of a batch."""
    lengths = hidden.lengths.tolist()
    starts = accumulate(lengths, initial=0)
    for row, (start, length, own) in enumerate(zip(starts, lengths, predicates, strict=False)):
        for predicate in own:
            yield _Place(row, predicate, start, start + length)
