"""The head that finds answers: BiDAF with residual self-attention (Seo et al. 2017; Clark and Gardner 2018).

With c_i and q_j the vectors of passage and question, which have passed the task's BiLSTM,

    attend     e_ij = u · c_i + v · q_j + (w ∘ c_i) · q_j
               a_i = Σ_j softmax_j(e_ij) q_j          b = Σ_i softmax_i(max_j e_ij) c_i
               x_i = relu(F [c_i; a_i; c_i ∘ a_i; b ∘ c_i]), then a BiLSTM
    itself     the same attention of x to x, but not to the token itself: x_i + relu(G [x_i; a_i; x_i ∘ a_i])
    point      a BiLSTM gives the score s_i that an answer starts at i, a second one e_j that it ends at j

    p(i, j) = exp(s_i + e_j) / Z,  Z = Σ exp(s_i + e_j) over all i ≤ j of one window, and all windows

The loss is -log Σ p(i, j) over the true answers. Where a passage may have none, exp(z) joins Z, and the
probability of no answer is exp(z) / Z. Shapes: B questions, N windows of all passages, T tokens of the
longest window, Q of the longest question, S tokens of all windows, D vectors, R `head.modelling`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from elmokit.base import bounded
from elmokit.kernels import Dropout
from elmokit.tasks.core import (
    EncoderSettings,
    HeadSettings,
    Hidden,
    TaskRNN,
    TaskSettings,
    TextPooling,
    TrainingSettings,
    attention,
    pad,
)
from elmokit.tasks.reading.data import AskedPassage, Span

_NEVER = -1e30  # a score whose exponential is zero, and which still can be added to another
_CANDIDATES = 5


@dataclass(frozen=True, kw_only=True)
class ReadingHeadSettings(HeadSettings):
    """The settings of the head for questions.

    Attributes:
        modelling: R, the size of each direction of the LSTMs behind the attention.
        window: longer passages are read in windows of so many tokens, which overlap by a quarter.
    """

    rnn: int = bounded(100, least=0, most=100_000)
    modelling: int = bounded(100, least=1, most=100_000)
    window: int = bounded(1000, least=16)
    dropout: float = bounded(0.3, least=0, most=1)
    shared_dropout: bool = True
    skip: bool = True


@dataclass(frozen=True, kw_only=True)
class ReadingSettings(TaskSettings):
    """All settings for questions."""

    encoder: EncoderSettings = field(default_factory=lambda: EncoderSettings(dropout=0.0))
    head: ReadingHeadSettings = field(default_factory=ReadingHeadSettings)
    training: TrainingSettings = field(
        default_factory=lambda: TrainingSettings(learning_rate=2e-3, patience=3)
    )


class FoundAnswers(NamedTuple):
    """What the head says about a question.

    Attributes:
        spans: the most probable answers, best first, each with its probability.
        none: the probability that there is no answer; None if there always is one.
    """

    spans: list[tuple[Span, float]]
    none: float | None

    @property
    def best(self) -> Span | None:
        """The answer, or None if it is more probable that there is none."""
        if not self.spans or (self.none is not None and self.none > self.spans[0][1]):
            return None
        return self.spans[0][0]


class Trilinear(nn.Module):
    """The scores e_ij between two texts; see the module."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(dim, 1), nn.Linear(dim, 1, bias=False)
        self.both = nn.Parameter(torch.full((dim,), dim**-0.5))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """(N, T, D), (N, Q, D) → (N, T, Q)."""
        scores: Tensor = (x * self.both) @ y.transpose(1, 2) + self.first(x) + self.second(y).transpose(1, 2)
        return scores


class ReadingHead(nn.Module):
    """Answers to questions.

    Args:
        dim: D.
        settings: sizes and dropout.
        longest: tokens of the longest answer that is returned.
        no_answer: whether a passage may not tell the answer.
    """

    def __init__(self, dim: int, *, settings: ReadingHeadSettings, longest: int, no_answer: bool) -> None:
        super().__init__()
        size, rate = 2 * settings.modelling, settings.dropout
        self.longest = longest
        self.dropout = Dropout(rate)
        self.match, self.merge = Trilinear(dim), nn.Linear(4 * dim, size)
        self.match_self, self.merge_self = Trilinear(size), nn.Linear(3 * size, size)
        self.modelling, self.starts, self.ends = (
            TaskRNN(width, 0, size=settings.modelling, layers=1, dropout=rate)
            for width in (size, size, 2 * size)
        )
        self.start, self.end = nn.Linear(size, 1), nn.Linear(size, 1)
        self.pooling = TextPooling("max", 2 * size)
        self.none = None
        if no_answer:
            self.none = nn.Sequential(nn.Linear(2 * size, size), nn.Tanh(), nn.Linear(size, 1))

    def loss(self, hidden: Hidden, examples: Sequence[AskedPassage]) -> Tensor:
        """Return the mean of -log p of the true answers; a question without any is left out."""
        starts, ends, none = self._scores(hidden, examples)  # (N, T), (N, T), (B,)
        total = self._total(starts, ends, none, examples)  # (B,)
        rows: list[int] = []
        firsts, lasts, counts = [], [], []
        window = 0
        for example in examples:
            before = len(rows)
            for begin, end in example.windows:
                inside = [span for span in example.spans if begin <= span[0] and span[1] < end]
                rows += [window] * len(inside)
                firsts += [first - begin for first, _ in inside]
                lasts += [last - begin for _, last in inside]
                window += 1
            counts.append(len(rows) - before)
        gold = _sum_logs(starts[rows, firsts] + ends[rows, lasts], torch.tensor(counts))  # (B,)
        empty = torch.tensor([not example.answers for example in examples], device=gold.device)
        if none is not None:
            gold = torch.where(empty, none, gold)
        known = gold > _NEVER / 2
        return (total - gold)[known].sum() / max(1, int(known.sum()))

    def decode(self, hidden: Hidden, items: Sequence[AskedPassage]) -> list[FoundAnswers]:
        """Return the most probable answers to each question."""
        starts, ends, none = self._scores(hidden, items)
        total = self._total(starts, ends, none, items)  # (B,)
        if not starts.shape[1]:
            return [FoundAnswers([], None if none is None else 1.0) for _ in items]
        width = starts.shape[1]
        lengths = range(min(self.longest, width))
        scores = torch.stack(  # (N, longest, T): by the start and the number of tokens after it
            [starts + functional.pad(ends[:, more:], (0, more), value=_NEVER) for more in lengths], dim=1
        )
        best, places = scores.flatten(1).topk(min(_CANDIDATES, scores[0].numel()), dim=1)  # (N, candidates)
        outputs, window = [], 0
        for row, item in enumerate(items):
            found: dict[Span, float] = {}
            for begin, end in item.windows:
                shares = (best[window] - total[row]).exp().tolist()
                for share, place in zip(shares, places[window].tolist(), strict=True):
                    more, first = divmod(place, width)
                    span = (begin + first, begin + first + more)
                    if span[1] < end:  # else it lies in the padding
                        found[span] = found.get(span, 0.0) + share
                window += 1
            ranked = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))[:_CANDIDATES]
            missing = None if none is None else (none[row] - total[row]).exp().item()
            outputs.append(FoundAnswers(ranked, missing))
        return outputs

    def evidence(self, hidden: Hidden, items: Sequence[AskedPassage], key: Span | None) -> Tensor:
        """Return the log-odds that a span is the answer, or that there is none, (B,)."""
        starts, ends, none = self._scores(hidden, items)  # (N, T), (N, T), (B,)
        after = ends.flip(1).logcumsumexp(dim=1).flip(1)  # (N, T): log Σ exp(e_j) over j ≥ i
        windows = items[0].windows
        right, wrong = [], []  # (B,) each
        for number, (begin, end) in enumerate(windows):
            own = slice(number, None, len(windows))
            s, e, rest = starts[own], ends[own], after[own]  # (B, T) each
            if key is not None and begin <= key[0] and key[1] < end:
                first, last = key[0] - begin, key[1] - begin
                right.append(s[:, first] + e[:, last])
                others = torch.cat([e[:, first:last], e[:, last + 1 :]], dim=1)
                others = functional.pad(others, (0, 1), value=_NEVER).logsumexp(dim=1, keepdim=True)
                rest = torch.cat([rest[:, :first], others, rest[:, first + 1 :]], dim=1)
            wrong.append((s + rest).logsumexp(dim=1))
        if none is not None:
            (right if key is None else wrong).append(none)
        return torch.stack(right).logsumexp(dim=0) - torch.stack(wrong).logsumexp(dim=0)

    def _scores(self, hidden: Hidden, items: Sequence[AskedPassage]) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return s and e, (N, T) each, `_NEVER` in the padding; and z, (B,), if there may be no answer."""
        parts = iter(torch.split(hidden.vectors, hidden.lengths.tolist()))
        questions, passages, counts = [], [], [len(item.windows) for item in items]
        for count in counts:
            questions.append(next(parts))
            passages += [next(parts) for _ in range(count)]
        c = torch.cat(passages)  # (S, D)
        lengths = torch.tensor([len(passage) for passage in passages])  # (N,)
        asked, asked_mask = pad(torch.cat(questions), torch.tensor([len(one) for one in questions]))
        owners = torch.repeat_interleave(torch.arange(len(items)), torch.tensor(counts)).to(c.device)  # (N,)
        x = self._attend(c, lengths, asked[owners], asked_mask[owners])  # (S, 2R)
        x = self.modelling(x, None, lengths).vectors  # (S, 2R)
        x = x + self._attend_self(x, lengths)
        start = self.starts(x, None, lengths).vectors  # (S, 2R)
        end = self.ends(torch.cat([x, start], dim=1), None, lengths).vectors  # (S, 2R)
        scores = torch.cat([self.start(start), self.end(end)], dim=1)  # (S, 2)
        padded = pad_sequence(
            list(torch.split(scores, lengths.tolist())), batch_first=True, padding_value=_NEVER
        )
        none = None
        if self.none is not None:
            whole = torch.tensor([int(part.sum()) for part in torch.split(lengths, counts)])  # (B,)
            none = self.none(self.pooling(torch.cat([start, end], dim=1), whole))[:, 0]
        return padded[..., 0], padded[..., 1], none

    def _attend(self, c: Tensor, lengths: Tensor, asked: Tensor, asked_mask: Tensor) -> Tensor:
        """(S, D), (N,), (N, Q, D), (N, Q) → (S, 2R)."""
        padded, mask = pad(c, lengths)  # (N, T, D), (N, T)
        scores = self.match(padded, asked)  # (N, T, Q)
        near = attention(scores, asked_mask[:, None, :]) @ asked  # (N, T, D)
        known = scores.masked_fill(~asked_mask[:, None, :], _NEVER)
        strongest = functional.pad(known, (0, 1), value=_NEVER).amax(dim=2)  # (N, T)
        about = attention(strongest, mask)[:, None, :] @ padded  # (N, 1, D)
        near, about = near[mask], about.expand_as(padded)[mask]  # (S, D) each
        return functional.relu(_merged(self.merge, c, near, c * near, c * about))

    def _attend_self(self, x: Tensor, lengths: Tensor) -> Tensor:
        """(S, 2R), (N,) → (S, 2R)."""
        padded, mask = pad(x, lengths)  # (N, T, 2R), (N, T)
        others = mask[:, None, :] & ~torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)
        near = (attention(self.match_self(padded, padded), others) @ padded)[mask]  # (S, 2R)
        merged = self.merge_self(self.dropout(torch.cat([x, near, x * near], dim=1)))
        return functional.relu(merged)  # (S, 2R)

    def _total(
        self, starts: Tensor, ends: Tensor, none: Tensor | None, items: Sequence[AskedPassage]
    ) -> Tensor:
        """Return log Z of each question, (B,)."""
        if not starts.shape[1]:
            return starts.new_zeros(len(items))
        after = ends.flip(1).logcumsumexp(dim=1).flip(1)  # (N, T): log Σ exp(e_j) over j ≥ i
        windows = (starts + after).logsumexp(dim=1)  # (N,)
        total = _sum_logs(windows, torch.tensor([len(item.windows) for item in items]))
        return total if none is None else torch.logaddexp(total, none)


def _merged(layer: nn.Linear, *parts: Tensor) -> Tensor:
    """Return the layer's output for parts (S, D) side by side, without the time to write these (S, nD)."""
    first, *others = layer.weight.chunk(len(parts), dim=1)
    merged = functional.linear(parts[0], first, layer.bias)
    for part, weight in zip(parts[1:], others, strict=True):
        merged = torch.addmm(merged, part, weight.T)
    return merged


def _sum_logs(values: Tensor, counts: Tensor) -> Tensor:
    """Return log Σ exp of each group of values; `_NEVER` for a group without any."""
    groups = torch.split(values, counts.tolist())
    padded = pad_sequence(list(groups), batch_first=True, padding_value=_NEVER)  # (B, most)
    if not padded.shape[1]:
        return padded.new_full((len(padded),), _NEVER)
    return padded.logsumexp(dim=1)
