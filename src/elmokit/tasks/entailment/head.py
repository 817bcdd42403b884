"""The head for pairs of texts: attend, compare, pool (ESIM; Chen et al. 2017).

With a_i and b_j the vectors of the two texts' tokens, which have passed the task's BiLSTM (encode),

    attend    e_ij = (W a_i) · (W b_j)        ã_i = Σ_j softmax_j(e_ij) b_j,   b̃_j the other way round
    compare   F([a; ã; a - ã; a ∘ ã]), then a second BiLSTM; the same for b
    pool      [mean(a'); max(a'); mean(b'); max(b')] → tanh layer → labels, or one score

Shapes: B pairs, T tokens of the longest text, S tokens of all texts, D vectors, R `head.compare`, K labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.base import bounded
from elmokit.kernels import Dropout
from elmokit.tasks.core import (
    EncoderSettings,
    HeadSettings,
    Hidden,
    Item,
    TaskRNN,
    TaskSettings,
    TextPooling,
    TrainingSettings,
    attention,
    log_odds,
    pad,
)
from elmokit.tasks.entailment.data import LabelledPair


@dataclass(frozen=True, kw_only=True)
class EntailmentHeadSettings(HeadSettings):
    """The settings of the head for pairs.

    Attributes:
        compare: R, the size of the layers that compare the texts.
        regression: whether a label is a number to be predicted, such as a similarity; else a name.
    """

    rnn: int = bounded(150, least=0, most=100_000)
    compare: int = bounded(150, least=1, most=100_000)
    regression: bool = False
    shared_dropout: bool = True
    skip: bool = True
    dropout: float = bounded(0.3, least=0, most=1)


@dataclass(frozen=True, kw_only=True)
class EntailmentSettings(TaskSettings):
    """All settings for pairs."""

    encoder: EncoderSettings = field(default_factory=lambda: EncoderSettings(dropout=0.0))
    head: EntailmentHeadSettings = field(default_factory=EntailmentHeadSettings)
    training: TrainingSettings = field(default_factory=lambda: TrainingSettings(learning_rate=1e-3))


class PairOutput(NamedTuple):
    """What the head says about a pair.

    Attributes:
        label: the most probable one; "" where a score is predicted.
        scores: the probability of every label.
        score: the predicted number, if that is asked for.
        alignment: (T_b, T_a) how much each token of the second text attends to each of the first.
    """

    label: str
    scores: dict[str, float]
    score: float | None
    alignment: Tensor


class EntailmentHead(nn.Module):
    """Labels, or scores, for pairs of texts.

    Args:
        dim: D.
        labels: the label set; none for scores.
        span: the least and the greatest score, between which all predictions are.
        settings: sizes and dropout.
        weights: (K,) weight of each label in the loss.
    """

    weights: Tensor | None

    def __init__(
        self,
        dim: int,
        labels: Sequence[str],
        *,
        span: tuple[float, float],
        settings: EntailmentHeadSettings,
        weights: Tensor | None = None,
    ) -> None:
        super().__init__()
        size = settings.compare
        self.labels, self.span = list(labels), span
        self.dropout = Dropout(settings.dropout)
        self.match = nn.Linear(dim, size, bias=False)
        nn.init.normal_(self.match.weight, std=size**-0.5)  # at first (W a) · (W b) ≈ a · b, as in ESIM
        self.project = nn.Linear(4 * dim, size)
        self.compare = TaskRNN(size, 0, size=size, layers=1, dropout=settings.dropout)
        self.mean, self.max = TextPooling("mean", 2 * size), TextPooling("max", 2 * size)
        self.hidden = nn.Linear(8 * size, size)
        self.linear = nn.Linear(size, max(1, len(self.labels)))
        self.register_buffer("weights", weights, persistent=False)
        self._ids = {label: number for number, label in enumerate(labels)}

    def loss(self, hidden: Hidden, examples: Sequence[LabelledPair]) -> Tensor:
        """Return the mean loss of a pair.

        For scores it is the cross-entropy between y and ŷ, both as shares of the way from the least score
        to the greatest; like the squared error it is least where ŷ is the mean of what y can be.
        """
        logits, _ = self._logits(hidden)  # (B, K)
        if not self.labels:
            low, high = self.span
            shares = torch.tensor([(float(one.label) - low) / (high - low) for one in examples])
            return functional.binary_cross_entropy_with_logits(
                logits[:, 0], shares.clamp(0, 1).to(logits.device)
            )
        gold = torch.tensor([self._ids[example.label] for example in examples], device=logits.device)
        return functional.cross_entropy(logits, gold, self.weights)

    def decode(self, hidden: Hidden, items: Sequence[Item]) -> list[PairOutput]:
        """Return the most probable label, or the score, of each pair, and its alignment."""
        logits, aligned = self._logits(hidden)  # (B, K), (B, T, T)
        lengths = hidden.lengths.view(-1, 2).tolist()
        low, high = self.span
        outputs = []
        for row, (first, second) in enumerate(lengths):
            alignment = aligned[row, :second, :first].cpu().clone()
            if not self.labels:
                score = low + (high - low) * torch.sigmoid(logits[row, 0]).item()
                outputs.append(PairOutput("", {}, score, alignment))
                continue
            scores = dict(zip(self.labels, logits[row].softmax(dim=0).tolist(), strict=True))
            outputs.append(PairOutput(max(scores, key=scores.__getitem__), scores, None, alignment))
        return outputs

    def evidence(self, hidden: Hidden, items: Sequence[Item], key: int) -> Tensor:
        """Return the log-odds of the label with this number, or the score, (B,)."""
        logits, _ = self._logits(hidden)  # (B, K)
        if self.labels:
            return log_odds(logits, key)
        low, high = self.span
        return low + (high - low) * torch.sigmoid(logits[:, 0])

    def _logits(self, hidden: Hidden) -> tuple[Tensor, Tensor]:
        """Return (B, K), and the attention of each second text to the first, (B, T, T)."""
        x, lengths = hidden.vectors, hidden.lengths  # (S, D), (2B,): first text, second text, first text, …
        padded, mask = pad(x, lengths)  # (2B, T, D), (2B, T)
        keys = pad(self.match(x), lengths)[0]  # (2B, T, R)
        scores = keys[0::2] @ keys[1::2].transpose(1, 2)  # (B, T, T)
        to_second = attention(scores, mask[1::2, None, :])  # (B, T, T)
        to_first = attention(scores.transpose(1, 2), mask[0::2, None, :])  # (B, T, T)
        pairs = (to_second @ padded[1::2], to_first @ padded[0::2])  # (B, T, D) each
        other = torch.stack(pairs, dim=1).flatten(0, 1)[mask]  # (S, D) in the order of x
        compared = functional.relu(self._projected(x, other))  # (S, R)
        seen: Hidden = self.compare(compared, None, lengths)  # (S, 2R)
        pooled = [
            pool(seen.vectors, lengths).view(-1, 2 * seen.vectors.shape[1]) for pool in (self.mean, self.max)
        ]
        top = torch.tanh(self.hidden(torch.cat(pooled, dim=1)))  # (B, R)
        return self.linear(self.dropout(top)), to_first

    def _projected(self, x: Tensor, other: Tensor) -> Tensor:
        """(S, D), (S, D) → (S, R): F([x; o; x - o; x ∘ o]) as (W₁ + W₃) x + (W₂ - W₃) o + W₄ (x ∘ o).

        The four side by side, (S, 4D), would take longer to write than the products.
        """
        first, second, difference, product = self.project.weight.chunk(4, dim=1)  # (R, D) each
        own = functional.linear(x, first + difference, self.project.bias)
        own = torch.addmm(own, other, (second - difference).T)
        return torch.addmm(own, x * other, product.T)
