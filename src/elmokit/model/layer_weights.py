"""What layers of both directions consist of: pairs of linear maps and of norms, one for each direction."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional


def pairwise_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return x · Wᵀ + b of each direction, (2, S, in) → (2, S, out)."""
    if bias is None:
        return torch.bmm(x, weight.transpose(1, 2))
    return torch.baddbmm(bias[:, None], x, weight.transpose(1, 2))


@torch.no_grad()
def draw(matrices: Sequence[Tensor], zeros: Sequence[Tensor], generator: torch.Generator | None) -> None:
    """Draw the matrices (2, out, in) uniformly as Glorot and Bengio do; set the others to zero."""
    for matrix in matrices:
        bound = (6 / (matrix.shape[1] + matrix.shape[2])) ** 0.5
        nn.init.uniform_(matrix, -bound, bound, generator=generator)
    for zero in zeros:
        nn.init.zeros_(zero)


class Norm(nn.Module):
    """Layer normalisation with weights of its own for each direction.

    y = w · (x - mean(x)) / √(var(x) + ε) + b
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2, dim))
        self.bias = nn.Parameter(torch.zeros(2, dim))

    def reset_parameters(self) -> None:
        """Start as plain normalisation."""
        nn.init.ones_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Normalise (2, S, P)."""
        return functional.layer_norm(x, x.shape[-1:]) * self.weight[:, None] + self.bias[:, None]
