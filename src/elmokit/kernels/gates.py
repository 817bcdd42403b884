"""What all LSTM loops share: weights, their preparation for fast steps, and the gradients of one step.

Every LSTM of the package keeps its gates in the order i, f, j, o (input, forget, candidate, output):

    z = W_x x + W_h h + b
    c = clip(σ(z_f) · c + σ(z_i) · tanh(z_j), ± cell_clip)
    h = clip(W_p (σ(z_o) · tanh(c)), ± projection_clip)

Shapes: b rows of a step, N cell, P projection.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from elmokit.kernels.precision import Precision, Product, make_product

_aten = torch.ops.aten


class LSTMShape(Protocol):
    """What a loop needs to know about a model."""

    @property
    def cell_dim(self) -> int: ...  # noqa: D102
    @property
    def forget_bias(self) -> float: ...  # noqa: D102
    @property
    def cell_clip(self) -> float | None: ...  # noqa: D102
    @property
    def projection_clip(self) -> float | None: ...  # noqa: D102
    @property
    def skip_connections(self) -> bool: ...  # noqa: D102


class LayerWeights(NamedTuple):
    """The weights of one layer in one direction."""

    input_weight: Tensor  # (4N, P)
    state_weight: Tensor  # (4N, P)
    bias: Tensor  # (4N,)
    projection: Tensor | None  # (P, N)

    def apply(self, function: Callable[[Tensor], Tensor]) -> "LayerWeights":
        """Return the weights after `function`."""
        projection = None if self.projection is None else function(self.projection)
        return LayerWeights(
            function(self.input_weight), function(self.state_weight), function(self.bias), projection
        )


def add_to_forget_gate(bias: Tensor, amount: float) -> Tensor:
    """Return the bias (…, 4N) with `amount` added for the forget gate."""
    shift = bias.new_tensor([0.0, amount, 0.0, 0.0])
    return bias + shift.repeat_interleave(bias.shape[-1] // 4)


def gate_products(
    weights: LayerWeights, shape: LSTMShape, precision: Precision, *, bound: float | None = None
) -> tuple[Product, Product]:
    """Prepare W_x (with the bias) and W_h so that one σ over all four gates is enough.

    tanh(x) = 2σ(2x) - 1, and torch's σ is about four times as fast as its tanh. The rows of the candidate j
    are doubled, which is exact; the loop turns σ(z_j) into the candidate.

    Args:
        weights: Of one layer and direction.
        shape: Of the model.
        precision: Of the products.
        bound: What |h| never exceeds, if known; see `make_product`.
    """
    double = weights.bias.new_tensor([1.0, 1.0, 2.0, 1.0]).repeat_interleave(shape.cell_dim)  # (4N,)
    bias = add_to_forget_gate(weights.bias, shape.forget_bias) * double
    return (
        make_product(precision, weights.input_weight * double[:, None], bias),
        make_product(precision, weights.state_weight * double[:, None], bound=bound),
    )


def gate_gradients(
    gates: Tensor,
    grad_memory: Tensor,
    grad_cell: Tensor,
    cells: tuple[Tensor, Tensor, Tensor],
    scratch: Sequence[Tensor],
    *,
    clip: float | None = None,
    reset: Tensor | None = None,
) -> None:
    """Go back through one step, in place.

    Args:
        gates: (b, 4N) σ(z_i), σ(z_f), tanh(z_j), σ(z_o); overwritten by ∂z.
        grad_memory: (b, N) gradient of σ(z_o) · tanh(c); overwritten.
        grad_cell: (b, N) gradient of c from the later step; overwritten by that of the earlier cell.
        cells: (b, N) each: the earlier cell, c, and tanh(c).
        scratch: Three tensors (b, N) to work in.
        clip: Limit of the cell, or None.
        reset: Rows whose earlier cell was set to zero, or None.
    """
    i, f, j, o = gates.chunk(4, dim=-1)  # (b, N) each
    before, cell, tanh_cell = cells
    grad_i, grad_f, grad_j = scratch
    grad_o = torch.mul(grad_memory, tanh_cell, out=grad_i)
    grad_memory.mul_(o)  # ∂ tanh(c)
    _aten.sigmoid_backward.grad_input(grad_o, o, grad_input=o)
    _aten.tanh_backward.grad_input(grad_memory, tanh_cell, grad_input=grad_memory)
    grad_cell.add_(grad_memory)
    clear_clipped(grad_cell, cell, clip)
    torch.mul(grad_cell, j, out=grad_i)
    torch.mul(grad_cell, i, out=grad_j)
    torch.mul(grad_cell, before, out=grad_f)
    grad_cell.mul_(f)
    if reset is not None:
        grad_f.index_fill_(0, reset, 0.0)
        grad_cell.index_fill_(0, reset, 0.0)
    _aten.sigmoid_backward.grad_input(grad_i, i, grad_input=i)
    _aten.sigmoid_backward.grad_input(grad_f, f, grad_input=f)
    _aten.tanh_backward.grad_input(grad_j, j, grad_input=j)


def clear_clipped(grad: Tensor, value: Tensor, limit: float | None) -> None:
    """Set the gradient to zero, in place, where the value was clipped to ± limit."""
    if limit is not None:
        _aten.hardtanh_backward.grad_input(grad, value, -limit, limit, grad_input=grad)
