"""The vectors of a text's tokens as one vector."""

from typing import Literal

import torch
from torch import Tensor, nn

TokenPooling = Literal["attention", "max", "mean"]

_ATTENTION = 128  # rows of W: one score per token needs no more


class TextPooling(nn.Module):
    """The vectors of a text's tokens as one: mean, maximum, or attention-weighted sum; zero without tokens.

    Attention: a_t = softmax_t(v · tanh(W h_t + b)), then Σ_t a_t h_t.
    """

    def __init__(self, kind: TokenPooling, dim: int) -> None:
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
