"""LSTM layers for training, with one backward pass written by hand.

Autograd through the time loop would keep a dozen tensors for each step and form the gradient of every weight
step by step; in a packed batch each step even leaves a gradient as large as the whole batch, so that time
grows with the square of a text's length (benchmarks/task_lstm.py). Here the gates are kept once, gradients
overwrite them in place, and the gradient of each weight is one large product at the end. Where there is a
native kernel for the precision, it does the same (`native/training.h`).

Shapes: S tokens in packed order, b rows of a step, B rows of the first step, T steps, D inputs, N cell,
P projection.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.utils.rnn import PackedSequence

from elmokit.kernels.dropout import dropout
from elmokit.kernels.gates import LayerWeights, LSTMShape, clear_clipped, gate_gradients, gate_products
from elmokit.kernels.native import NativeTrainingLSTM, training_engine
from elmokit.kernels.packing import Packing
from elmokit.kernels.precision import Precision, make_product, multiply, training_precision


def lstm_window(
    x: Tensor,
    weights: LayerWeights,
    start: tuple[Tensor, Tensor],
    resets: list[Tensor],
    shape: LSTMShape,
    precision: Precision = "float32",
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Run one layer of a biLM in one direction over a window of text.

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
    rows = [x.shape[1]] * x.shape[0]
    out, hidden, cell = _layer(x.flatten(0, 1), weights, start, rows, resets, shape, precision)
    return out.view_as(x), (hidden, cell)


def bidirectional_lstm(
    lstm: nn.LSTM,
    x: Tensor,
    packing: Packing,
    *,
    precision: Precision | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Run all layers of torch's bidirectional LSTM over a packed batch.

    Args:
        lstm: The weights, and the dropout between its layers.
        x: (S, D), the tokens in the order of the text.
        packing: How the sentences are packed.
        precision: Of the products; if not given, bfloat16 in training where it is native, else float32.
        generator: What dropout masks are drawn from; torch's global generator if not given.

    Returns:
        (S, 2N), in the order of the text.
    """
    if not len(x):
        return x.new_zeros(0, 2 * lstm.hidden_size)
    if x.device.type != "cpu":
        index, inverse = packing.index[0].to(x.device), packing.inverse[0].to(x.device)  # (S,)
        packed: PackedSequence = lstm(PackedSequence(x[index], torch.tensor(packing.step_sizes)))[0]
        return packed.data[inverse]
    if precision is None:
        precision = training_precision() if lstm.training and x.dtype == torch.float32 else "float32"
    sizes, shape = packing.step_sizes, _PlainShape(lstm.hidden_size)
    for layer in range(lstm.num_layers):
        if layer:
            x = dropout(x, lstm.dropout, training=lstm.training, generator=generator)
        outputs = []
        for direction, suffix in enumerate((f"l{layer}", f"l{layer}_reverse")):
            input_weight, state_weight, input_bias, state_bias = (
                getattr(lstm, f"{name}_{suffix}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            )
            weights = LayerWeights(input_weight, state_weight, input_bias + state_bias, None)
            own = x[packing.index[direction]]
            hidden = _layer(own, weights, None, sizes, None, shape, precision)[0]
            outputs.append(hidden[packing.inverse[direction]])
        x = torch.cat(outputs, dim=1)
    return x


def _layer(
    x: Tensor,
    weights: LayerWeights,
    start: tuple[Tensor, Tensor] | None,
    step_sizes: Sequence[int],
    resets: list[Tensor] | None,
    shape: LSTMShape,
    precision: Precision,
) -> tuple[Tensor, Tensor, Tensor]:
    """Run one layer in one direction over packed rows (S, D).

    Returns:
        (S, P), and hidden and cell of the last step, without gradient.
    """
    engine = training_engine(precision, x)
    if engine is not None:
        return NativeTrainingLSTM.apply(x, *weights, start, step_sizes, resets, shape, engine)  # type: ignore[no-any-return, no-untyped-call]
    if start is None:
        start = (
            x.new_zeros(step_sizes[0], weights.state_weight.shape[1]),
            x.new_zeros(step_sizes[0], shape.cell_dim),
        )
    return _LSTM.apply(x, *weights, start, step_sizes, resets, shape, precision)  # type: ignore[no-any-return, no-untyped-call]


class _PlainShape(NamedTuple):
    """The shape of torch's own LSTM."""

    cell_dim: int
    forget_bias: float = 0.0
    cell_clip: float | None = None
    projection_clip: float | None = None
    skip_connections: bool = False


class _LSTM(torch.autograd.Function):
    """One layer in one direction; see `gates` for the equations. m = σ(z_o) tanh(c) is called memory."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        x: Tensor,
        input_weight: Tensor,
        state_weight: Tensor,
        bias: Tensor,
        projection: Tensor | None,
        start: tuple[Tensor, Tensor],
        step_sizes: Sequence[int],
        resets: list[Tensor] | None,
        shape: LSTMShape,
        precision: Precision,
    ) -> tuple[Tensor, Tensor, Tensor]:
        weights = LayerWeights(input_weight, state_weight, bias, projection)
        input_product, state_product = gate_products(weights, shape, precision)
        projection_product = None if projection is None else make_product(precision, projection)
        gates = input_product(x)  # (S, 4N)
        num_inputs, dim = x.shape[1], state_weight.shape[1]
        inputs = x.new_empty(len(x), num_inputs + dim)  # (S, D + P) x and the state before it, for backward
        inputs[:, :num_inputs] = x
        cells, tanh_cells, memories = x.new_empty(3, len(x), shape.cell_dim)  # (S, N) each
        out = memories if projection is None else x.new_empty(len(x), dim)  # (S, P)
        state, cell = start
        minus_one = x.new_tensor(-1.0)
        for number, rows in enumerate(_steps(step_sizes)):
            size, reset = step_sizes[number], None if resets is None else resets[number]
            before = _cleared(inputs[rows, num_inputs:].copy_(state[:size]), reset)  # (b, P)
            state_product.add_to(gates[rows], before)
            i, f, j, o = gates[rows].sigmoid_().chunk(4, dim=-1)  # (b, N) each
            torch.add(minus_one, j, alpha=2, out=j)
            cell = _cleared(torch.mul(f, cell[:size], out=cells[rows]), reset).addcmul_(i, j)
            if shape.cell_clip is not None:
                cell.clamp_(-shape.cell_clip, shape.cell_clip)
            torch.mul(cell, 2, out=tanh_cells[rows]).sigmoid_()
            torch.add(minus_one, tanh_cells[rows], alpha=2, out=tanh_cells[rows])
            torch.mul(o, tanh_cells[rows], out=memories[rows])
            state = out[rows]
            if projection_product is not None:
                projection_product.into(state, memories[rows])
                if shape.projection_clip is not None:
                    state.clamp_(-shape.projection_clip, shape.projection_clip)
        ctx.save_for_backward(input_weight, state_weight, projection, out)
        ctx.kept = (gates, inputs, cells, tanh_cells, memories, start[1])
        ctx.settings = (step_sizes, resets, shape, precision)
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
        step_sizes, resets, shape, precision = ctx.settings
        back_through_state = make_product(precision, state_weight.T)
        back_through_projection = None if projection is None else make_product(precision, projection.T)
        grad_hidden = grad_out.contiguous().clone()  # (S, P), to which each later step adds
        grad_cell = gates.new_zeros(step_sizes[0], shape.cell_dim)
        scratch = gates.new_empty(4, *grad_cell.shape)
        steps = _steps(step_sizes)
        for number, rows in reversed(list(enumerate(steps))):
            size, reset = step_sizes[number], None if resets is None else resets[number]
            *space, grad_memory = scratch[:, :size]  # (b, N) each
            if back_through_projection is None:
                grad_memory.copy_(grad_hidden[rows])
            else:
                clear_clipped(grad_hidden[rows], out[rows], shape.projection_clip)
                back_through_projection(grad_hidden[rows], grad_memory)
            before = cells[steps[number - 1]] if number else first_cell
            gate_gradients(
                gates[rows],
                grad_memory,
                grad_cell[:size],
                (before[:size], cells[rows], tanh_cells[rows]),
                space,
                clip=shape.cell_clip,
                reset=reset,
            )
            if number:
                grad_hidden[steps[number - 1]][:size] += _cleared(back_through_state(gates[rows]), reset)
        grad_weights = multiply(gates.T, inputs, precision)  # (4N, D + P)
        grad_projection = None  # (P, N)
        if projection is not None:
            grad_projection = multiply(grad_hidden.T, memories, precision)
        grad_x = make_product(precision, input_weight.T)(gates)  # (S, D)
        num_inputs = input_weight.shape[1]
        of_gates = (grad_weights[:, :num_inputs], grad_weights[:, num_inputs:], gates.sum(0))
        return (grad_x, *of_gates, grad_projection, *(None,) * 5)


def _cleared(x: Tensor, rows: Tensor | None) -> Tensor:
    """Set some rows to zero, in place."""
    return x if rows is None else x.index_fill_(0, rows, 0.0)


def _steps(step_sizes: Sequence[int]) -> list[slice]:
    """Return the packed places of each step."""
    return [slice(start, end) for start, end in pairwise(accumulate(step_sizes, initial=0))]
