"""The head that labels whole texts: pooling over the tokens, and a linear layer."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.tasks.decisions import Decision
from elmokit.tasks.examples import Example
from elmokit.tasks.rnn import Hidden
from elmokit.tasks.settings import PoolingChoice

_ATTENTION = 128  # rows of W: one score for a token needs no more


class Pooling(nn.Module):
    """One vector of a text's: their mean, their maximum, or a sum weighted by attention; zero for no tokens.

    Attention: a_t = softmax_t(v · tanh(W h_t + b)), then Σ_t a_t h_t.
    """

    def __init__(self, kind: PoolingChoice, dim: int) -> None:
        super().__init__()
        self.kind = kind
        self.attention = None
        if kind == "attention":
            self.attention = nn.Sequential(
                nn.Linear(dim, _ATTENTION), nn.Tanh(), nn.Linear(_ATTENTION, 1, bias=False)
            )

    def forward(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """(S, D), (B,) → (B, D)."""
        lengths = lengths.to(vectors.device)
        rows = torch.repeat_interleave(torch.arange(len(lengths), device=vectors.device), lengths)  # (S,)
        pooled = vectors.new_zeros(len(lengths), vectors.shape[1])
        if self.kind == "max":
            places = rows[:, None].expand_as(vectors)
            return pooled.scatter_reduce(0, places, vectors, "amax", include_self=False)
        if self.attention is None:
            return pooled.index_add(0, rows, vectors / lengths[rows][:, None])
        scores = self.attention(vectors)[:, 0]  # (S,)
        largest = pooled.new_zeros(len(lengths)).scatter_reduce(0, rows, scores, "amax", include_self=False)
        weights = (scores - largest.detach()[rows]).exp()  # (S,)
        total = pooled.new_zeros(len(lengths)).index_add(0, rows, weights)
        return pooled.index_add(0, rows, vectors * (weights / total[rows])[:, None])


class ClassifierHead(nn.Module):
    """Labels for texts.

    Args:
        dim: of the vectors.
        labels: that there are.
        pooling: see `Pooling`.
        multi_label: whether each label is a question of its own; else exactly one is right.
        weights: (K,) how much each label counts.
    """

    weights: Tensor | None

    def __init__(
        self,
        dim: int,
        labels: Sequence[str],
        *,
        pooling: PoolingChoice,
        multi_label: bool,
        weights: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.labels = list(labels)
        self.multi_label = multi_label
        self.pooling = Pooling(pooling, dim)
        self.linear = nn.Linear(dim, len(labels))
        self.register_buffer("weights", weights, persistent=False)
        self._ids = {label: number for number, label in enumerate(labels)}

    def loss(self, hidden: Hidden, examples: Sequence[Example]) -> Tensor:
        """The mean loss of a text."""
        logits = self._logits(hidden)  # (B, K)
        if not self.multi_label:
            gold = torch.tensor([self._ids[example.labels[0]] for example in examples], device=logits.device)
            return functional.cross_entropy(logits, gold, self.weights)
        several = torch.zeros_like(logits)
        for row, example in enumerate(examples):
            several[row, [self._ids[label] for label in example.labels]] = 1.0
        return functional.binary_cross_entropy_with_logits(logits, several, pos_weight=self.weights)

    def decide(self, hidden: Hidden) -> list[Decision]:
        """The likeliest label, or all that are likelier than not."""
        logits = self._logits(hidden)  # (B, K)
        probabilities = torch.sigmoid(logits) if self.multi_label else logits.softmax(dim=1)
        decisions = []
        for row in probabilities.tolist():
            scores = dict(zip(self.labels, row, strict=True))
            likely = [label for label, probability in scores.items() if probability > 0.5]
            chosen = likely if self.multi_label else [max(scores, key=scores.__getitem__)]
            decisions.append(Decision(labels=chosen, scores=scores))
        return decisions

    def _logits(self, hidden: Hidden) -> Tensor:
        logits: Tensor = self.linear(self.pooling(hidden.vectors, hidden.lengths))
        return logits
