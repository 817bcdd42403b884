"""Torch's bidirectional LSTM over a packed batch, on the CPU with a backward pass of its own.

In torch's own loop every step leaves a gradient as large as the whole batch, filled with zeros, so that time
grows with the square of a text's length (benchmarks/task_lstm.py). Here the gates are kept once, gradients
overwrite them in place, and the gradient of each weight is one large product at the end. In training the
factors of the products are bfloat16 where the processor does that natively; everything else is float32.

Shapes: S tokens in packed order, b sentences running at a step, D inputs, N cells.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.utils.rnn import PackedSequence

from elmokit.kernels.dropout import dropout
from elmokit.kernels.gates import gate_gradients
from elmokit.kernels.packing import Packing
from elmokit.kernels.precision import Precision, make_product, multiply, training_precision


def bidirectional_lstm(
    lstm: nn.LSTM,
    x: Tensor,
    packing: Packing,
    *,
    precision: Precision | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Run all layers of a bidirectional LSTM over a packed batch.

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
    for layer in range(lstm.num_layers):
        if layer:
            x = dropout(x, lstm.dropout, training=lstm.training, generator=generator)
        outputs = []
        for direction, suffix in enumerate((f"l{layer}", f"l{layer}_reverse")):
            input_weight, state_weight, input_bias, state_bias = (
                getattr(lstm, f"{name}_{suffix}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            )
            hidden: Tensor = _PackedLSTM.apply(  # type: ignore[no-untyped-call]
                x[packing.index[direction]],
                input_weight,
                state_weight,
                input_bias + state_bias,
                packing.step_sizes,
                precision,
            )
            outputs.append(hidden[packing.inverse[direction]])
        x = torch.cat(outputs, dim=1)
    return x


class _PackedLSTM(torch.autograd.Function):
    """The loop of one layer and direction from the zero state, and its gradient; see `gates`."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        x: Tensor,
        input_weight: Tensor,
        state_weight: Tensor,
        bias: Tensor,
        step_sizes: Sequence[int],
        precision: Precision,
    ) -> Tensor:
        gates = make_product(precision, input_weight, bias)(x)  # (S, 4N)
        state_product = make_product(precision, state_weight)
        cells, tanh_cells, out = x.new_empty(3, len(x), state_weight.shape[1]).unbind()  # (S, N) each
        before = None
        for rows in _steps(step_sizes):
            now, cell = gates[rows], cells[rows]
            if before is not None:
                state_product.add_to(now, out[before][: len(now)])
            i, f, j, o = now.chunk(4, dim=1)  # (b, N) each
            now[:, : 2 * i.shape[1]].sigmoid_()
            j.tanh_()
            o.sigmoid_()
            torch.mul(i, j, out=cell)
            if before is not None:
                cell.addcmul_(f, cells[before][: len(now)])
            torch.tanh(cell, out=tanh_cells[rows])
            torch.mul(o, tanh_cells[rows], out=out[rows])
            before = rows
        ctx.save_for_backward(x, input_weight, state_weight, out)
        ctx.kept = (gates, cells, tanh_cells, step_sizes)
        ctx.precision = precision
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        x, input_weight, state_weight, out = ctx.saved_tensors
        if ctx.kept is None:
            raise RuntimeError("backward ran a second time, but the first has overwritten the gates")
        gates, cells, tanh_cells, step_sizes = ctx.kept
        ctx.kept = None
        grad_hidden = grad_out.contiguous().clone()  # (S, N), to which each later step adds
        grad_cell = grad_hidden.new_zeros(step_sizes[0], state_weight.shape[1])
        scratch = grad_cell.new_empty(3, *grad_cell.shape)
        steps = _steps(step_sizes)
        back_through_state = make_product(ctx.precision, state_weight.T)
        for rows, before in zip(reversed(steps), [*reversed(steps[:-1]), None], strict=True):
            now = gates[rows]
            size = len(now)
            gate_gradients(
                now,
                grad_hidden[rows],
                grad_cell[:size],
                (None if before is None else cells[before][:size], cells[rows], tanh_cells[rows]),
                scratch[:, :size].unbind(),
            )
            if before is not None:
                back_through_state.add_to(grad_hidden[before][:size], now)
        # The tokens that have another before them, and the packed places of those others.
        later = torch.arange(step_sizes[0], len(x))  # (S',)
        widths = torch.tensor(step_sizes)
        earlier = later - torch.repeat_interleave(widths[:-1], widths[1:])
        precision = ctx.precision
        return (
            multiply(gates, input_weight, precision),
            multiply(gates.T, x, precision),
            multiply(gates[step_sizes[0] :].T, out[earlier], precision),
            gates.sum(0),
            None,
            None,
        )


def _steps(step_sizes: Sequence[int]) -> list[slice]:
    """Return the packed places of each step."""
    return [slice(start, end) for start, end in pairwise(accumulate(step_sizes, initial=0))]
