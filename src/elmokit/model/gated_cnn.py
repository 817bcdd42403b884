"""A layer of gated convolutions that look back only, in both directions (Dauphin et al. 2017).

Shapes: S tokens of all sentences, k taps of the convolution, N channels, P projection. A leading axis of 2 is
the direction: 0 forward, 1 backward, each in the order in which it reads.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.model.config import BiLMConfig
from elmokit.model.layer_weights import Norm, draw, pairwise_linear
from elmokit.model.reading_order import positions_of


class GatedCNNLayer(nn.Module):
    """What a token adds to itself from the k - 1 tokens before it.

    a_t, g_t = Σ_{j<k} W_j x_{t-j} + b          zero before the sentence
    h_t = norm(x_t + W_p (a_t · σ(g_t)))
    """

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        cell, dim = config.cell_dim, config.projection_dim
        self.width = config.width
        self.kernel = nn.Parameter(torch.empty(2, 2 * cell, config.width * dim))
        self.bias = nn.Parameter(torch.zeros(2, 2 * cell))
        self.projection = nn.Parameter(torch.empty(2, dim, cell))
        self.norm = Norm(dim)
        if self.bias.device.type != "meta":
            self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw initial weights (Glorot)."""
        draw([self.kernel, self.projection], [self.bias], generator)
        self.norm.reset_parameters()

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Run both directions, (2, S, P) → (2, S, P)."""
        position = positions_of(lengths).to(x.device)  # (S,)
        shifted = [x]
        for back in range(1, self.width):
            moved = functional.pad(x, (0, 0, back, 0))[:, : x.shape[1]]  # (2, S, P)
            shifted.append(moved * (position >= back)[:, None])
        gates = pairwise_linear(torch.cat(shifted, dim=-1), self.kernel, self.bias)  # (2, S, 2N)
        out: Tensor = self.norm(x + pairwise_linear(functional.glu(gates, dim=-1), self.projection))
        return out
