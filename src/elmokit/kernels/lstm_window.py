"""One LSTM layer of one direction over a window of text, with a backward pass written by hand.

What `model.lstm.BiLSTMLayer` computes, for training: autograd through the time loop would keep a dozen
tensors a step and form every weight's gradient step by step. Here the gates are kept once, gradients are
written over them in place, and each weight's gradient is one large product at the end.

Shapes: T steps, B rows, N cell, P projection.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmokit.kernels.precision import Precision, Product, make_product, multiply

_aten = torch.ops.aten


class LSTMConfig(Protocol):
    """What the loop needs to know of a model's config."""

    @property
    def cell_dim(self) -> int: ...  # noqa: D102
    @property
    def forget_bias(self) -> float: ...  # noqa: D102
    @property
    def cell_clip(self) -> float | None: ...  # noqa: D102
    @property
    def projection_clip(self) -> float | None: ...  # noqa: D102


@dataclass(frozen=True)
class LayerWeights:
    """The parameters of one direction of a `BiLSTMLayer`: (4N, P), (4N, P), (4N,), (P, N) or None."""

    input_weight: Tensor
    state_weight: Tensor
    bias: Tensor
    projection: Tensor | None


def lstm_window(
    x: Tensor,
    weights: LayerWeights,
    start: tuple[Tensor, Tensor],
    resets: list[Tensor],
    config: LSTMConfig,
    precision: Precision = "float32",
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Run a layer over a window.

    Args:
        x: (T, B, P).
        weights: of this layer and direction.
        start: hidden (B, P) and cell (B, N); no gradient goes into them.
        resets: for each step the rows whose state is zero before it.
        config: of the model.
        precision: of the products.

    Returns:
        (T, B, P), and the state at the end, without gradient.
    """
    out, hidden, cell = _LSTMWindow.apply(  # type: ignore[no-untyped-call]
        x,
        weights.input_weight,
        weights.state_weight,
        weights.bias,
        weights.projection,
        start,
        resets,
        config,
        precision,
    )
    return out, (hidden, cell)


class _LSTMWindow(torch.autograd.Function):
    """z = W_x x + W_h h + b;  c = clip(σ(f) c + σ(i) tanh(j));  m = σ(o) tanh(c);  h = clip(W_p m)."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        x: Tensor,
        input_weight: Tensor,
        state_weight: Tensor,
        bias: Tensor,
        projection: Tensor | None,
        start: tuple[Tensor, Tensor],
        resets: list[Tensor],
        config: LSTMConfig,
        precision: Precision,
    ) -> tuple[Tensor, Tensor, Tensor]:
        steps, rows, dim = x.shape
        n = config.cell_dim
        # tanh(x) = 2σ(2x) - 1, and torch's σ is four times as fast as its tanh: double the candidate's rows.
        double = bias.new_tensor([1.0, 1.0, 2.0, 1.0]).repeat_interleave(n)  # (4N,)
        forget = bias.new_tensor([0.0, config.forget_bias, 0.0, 0.0]).repeat_interleave(n)
        input_product = make_product(precision, input_weight * double[:, None], (bias + forget) * double)
        state_product = make_product(precision, state_weight * double[:, None])
        projection_product = None if projection is None else make_product(precision, projection)

        gates = input_product(x.reshape(-1, dim)).view(steps, rows, 4 * n)  # (T, B, 4N)
        inputs = x.new_empty(
            steps, rows, 2 * dim
        )  # (T, B, 2P): x and the state before each step, for backward
        inputs[:, :, :dim] = x
        cells, tanh_cells, memories = x.new_empty(3, steps, rows, n)  # (T, B, N) each
        out = memories if projection is None else torch.empty_like(x)  # (T, B, P)
        state, cell = start
        minus_one = x.new_tensor(-1.0)
        for t in range(steps):
            before = inputs[t, :, dim:].copy_(state).index_fill_(0, resets[t], 0.0)  # (B, P)
            state_product.add_to(gates[t], before)
            i, f, j, o = gates[t].sigmoid_().chunk(4, dim=-1)  # (B, N) each
            torch.add(minus_one, j, alpha=2, out=j)
            torch.mul(f, cell, out=cells[t])
            cell = cells[t].index_fill_(0, resets[t], 0.0).addcmul_(i, j)
            if config.cell_clip is not None:
                cell.clamp_(-config.cell_clip, config.cell_clip)
            torch.mul(cell, 2, out=tanh_cells[t]).sigmoid_()
            torch.add(minus_one, tanh_cells[t], alpha=2, out=tanh_cells[t])
            torch.mul(o, tanh_cells[t], out=memories[t])
            if projection_product is not None:
                projection_product.into(out[t], memories[t])
                if config.projection_clip is not None:
                    out[t].clamp_(-config.projection_clip, config.projection_clip)
            state = out[t]
        ctx.save_for_backward(input_weight, state_weight, projection, out)
        ctx.kept = (gates, inputs, cells, tanh_cells, memories, start[1])
        ctx.settings = (resets, config, precision)
        hidden, cell = state.clone(), cell.clone()
        ctx.mark_non_differentiable(hidden, cell)
        return out, hidden, cell

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_out: Tensor, _hidden: Tensor, _cell: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        input_weight, state_weight, projection, out = ctx.saved_tensors
        if ctx.kept is None:
            raise RuntimeError("backward a second time: the first has written gradients over the gates")
        gates, inputs, cells, tanh_cells, memories, first_cell = ctx.kept
        ctx.kept = None
        resets, config, precision = ctx.settings
        steps, rows, dim = grad_out.shape
        n = config.cell_dim
        back_through_state = make_product(precision, state_weight.T)
        back_through_projection = None if projection is None else make_product(precision, projection.T)
        grad_hidden = (
            grad_out.contiguous().clone()
        )  # (T, B, P), what comes from the later step is added to it
        grad_cell = gates.new_zeros(rows, n)
        scratch = gates.new_empty(4, rows, n)
        for t in reversed(range(steps)):
            grad_memory = _through_projection(
                grad_hidden[t], out[t], back_through_projection, config, scratch[3]
            )
            before = cells[t - 1] if t else first_cell
            _gate_gradients(
                gates[t],
                grad_memory,
                grad_cell,
                (before, cells[t], tanh_cells[t]),
                resets[t],
                config,
                scratch,
            )
            if t:
                grad_before = back_through_state(gates[t])  # (B, P)
                grad_hidden[t - 1].add_(grad_before.index_fill_(0, resets[t], 0.0))
        grad_gates = gates.view(-1, 4 * n)  # (TB, 4N)
        grad_weights = multiply(grad_gates.T, inputs.view(-1, 2 * dim), precision)  # (4N, 2P)
        grad_projection = None
        if projection is not None:
            grad_projection = multiply(grad_hidden.view(-1, dim).T, memories.view(-1, n), precision)  # (P, N)
        grad_x = make_product(precision, input_weight.T)(grad_gates).view(steps, rows, dim)
        return (
            grad_x,
            grad_weights[:, :dim],
            grad_weights[:, dim:],
            grad_gates.sum(0),
            grad_projection,
            *(None,) * 4,
        )


def _through_projection(
    grad_hidden: Tensor, hidden: Tensor, product: Product | None, config: LSTMConfig, space: Tensor
) -> Tensor:
    """From ∂h (B, P), cleared in place where h is clipped, to ∂m (B, N)."""
    if product is None:
        return space.copy_(grad_hidden)
    if config.projection_clip is not None:
        _through_clip(grad_hidden, hidden, config.projection_clip)
    return product(grad_hidden, space)


def _gate_gradients(
    gates: Tensor,
    grad_memory: Tensor,
    grad_cell: Tensor,
    cells: tuple[Tensor, Tensor, Tensor],
    reset: Tensor,
    config: LSTMConfig,
    scratch: Tensor,
) -> None:
    """Write ∂z over the gates (B, 4N), and ∂c of the step before over `grad_cell` (B, N)."""
    i, f, j, o = gates.chunk(4, dim=-1)  # (B, N) each
    before, cell, tanh_cell = cells
    grad_i, grad_f, grad_j, _ = scratch
    grad_o = torch.mul(grad_memory, tanh_cell, out=grad_i)
    grad_memory.mul_(o)  # ∂ tanh(c)
    _aten.sigmoid_backward.grad_input(grad_o, o, grad_input=o)
    _aten.tanh_backward.grad_input(grad_memory, tanh_cell, grad_input=grad_memory)
    grad_cell.add_(grad_memory)
    if config.cell_clip is not None:
        _through_clip(grad_cell, cell, config.cell_clip)
    torch.mul(grad_cell, j, out=grad_i)
    torch.mul(grad_cell, before, out=grad_f).index_fill_(0, reset, 0.0)
    torch.mul(grad_cell, i, out=grad_j)
    grad_cell.mul_(f).index_fill_(0, reset, 0.0)
    _aten.sigmoid_backward.grad_input(grad_i, i, grad_input=i)
    _aten.sigmoid_backward.grad_input(grad_f, f, grad_input=f)
    _aten.tanh_backward.grad_input(grad_j, j, grad_input=j)


def _through_clip(grad: Tensor, clipped: Tensor, limit: float) -> None:
    """Clear the gradient in place where the value lies on the limit."""
    _aten.hardtanh_backward.grad_input(grad, clipped, -limit, limit, grad_input=grad)
