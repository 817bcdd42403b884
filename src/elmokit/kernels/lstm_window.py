"""One LSTM layer in one direction over a window of text, for pretraining, with a backward pass of its own.

It computes what `model.lstm.BiLSTMLayer` does. Autograd through the time loop would keep a dozen tensors for
each step and form the gradient of every weight step by step. Here the gates are kept once, gradients
overwrite them in place, and the gradient of each weight is one large product at the end.

Shapes: T steps, B rows, N cell, P projection.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmokit.kernels.gates import LayerWeights, LSTMShape, clear_clipped, gate_gradients, gate_products
from elmokit.kernels.precision import Precision, Product, make_product, multiply


def lstm_window(
    x: Tensor,
    weights: LayerWeights,
    start: tuple[Tensor, Tensor],
    resets: list[Tensor],
    shape: LSTMShape,
    precision: Precision = "float32",
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Run a layer over a window.

    Args:
        x: (T, B, P).
        weights: Of this layer and direction.
        start: Hidden (B, P) and cell (B, N); they get no gradient.
        resets: For each step the rows whose state is set to zero before it.
        shape: Of the model.
        precision: Of the products.

    Returns:
        (T, B, P), and the state at the end, without gradient.
    """
    out, hidden, cell = _LSTMWindow.apply(x, *weights, start, resets, shape, precision)  # type: ignore[no-untyped-call]
    return out, (hidden, cell)


class _LSTMWindow(torch.autograd.Function):
    """The loop and its gradient; see `gates` for the equations. m = σ(z_o) tanh(c) is called memory."""

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
        shape: LSTMShape,
        precision: Precision,
    ) -> tuple[Tensor, Tensor, Tensor]:
        steps, rows, dim = x.shape
        n = shape.cell_dim
        weights = LayerWeights(input_weight, state_weight, bias, projection)
        input_product, state_product = gate_products(weights, shape, precision)
        projection_product = None if projection is None else make_product(precision, projection)

        gates = input_product(x.reshape(-1, dim)).view(steps, rows, 4 * n)  # (T, B, 4N)
        inputs = x.new_empty(steps, rows, 2 * dim)  # (T, B, 2P) x and the state before it, for backward
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
            if shape.cell_clip is not None:
                cell.clamp_(-shape.cell_clip, shape.cell_clip)
            torch.mul(cell, 2, out=tanh_cells[t]).sigmoid_()
            torch.add(minus_one, tanh_cells[t], alpha=2, out=tanh_cells[t])
            torch.mul(o, tanh_cells[t], out=memories[t])
            if projection_product is not None:
                projection_product.into(out[t], memories[t])
                if shape.projection_clip is not None:
                    out[t].clamp_(-shape.projection_clip, shape.projection_clip)
            state = out[t]
        ctx.save_for_backward(input_weight, state_weight, projection, out)
        ctx.kept = (gates, inputs, cells, tanh_cells, memories, start[1])
        ctx.settings = (resets, shape, precision)
        hidden, cell = state.clone(), cell.clone()
        ctx.mark_non_differentiable(hidden, cell)
        return out, hidden, cell

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_out: Tensor, _hidden: Tensor, _cell: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        input_weight, state_weight, projection, out = ctx.saved_tensors
        if ctx.kept is None:
            raise RuntimeError("backward ran a second time, but the first has overwritten the gates")
        gates, inputs, cells, tanh_cells, memories, first_cell = ctx.kept
        ctx.kept = None
        resets, shape, precision = ctx.settings
        steps, rows, dim = grad_out.shape
        n = shape.cell_dim
        back_through_state = make_product(precision, state_weight.T)
        back_through_projection = None if projection is None else make_product(precision, projection.T)
        grad_hidden = grad_out.contiguous().clone()  # (T, B, P), to which each later step adds
        grad_cell = gates.new_zeros(rows, n)
        *scratch, space = gates.new_empty(4, rows, n)
        for t in reversed(range(steps)):
            grad_memory = _through_projection(grad_hidden[t], out[t], back_through_projection, shape, space)
            before = cells[t - 1] if t else first_cell
            gate_gradients(
                gates[t],
                grad_memory,
                grad_cell,
                (before, cells[t], tanh_cells[t]),
                scratch,
                clip=shape.cell_clip,
                reset=resets[t],
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
        of_weights = (grad_weights[:, :dim], grad_weights[:, dim:], grad_gates.sum(0), grad_projection)
        return (grad_x, *of_weights, *(None,) * 4)


def _through_projection(
    grad_hidden: Tensor, hidden: Tensor, product: Product | None, shape: LSTMShape, space: Tensor
) -> Tensor:
    """Turn ∂h (B, P), which is cleared in place where h was clipped, into ∂m (B, N)."""
    if product is None:
        return space.copy_(grad_hidden)
    clear_clipped(grad_hidden, hidden, shape.projection_clip)
    return product(grad_hidden, space)
