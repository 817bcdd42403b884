"""Layers of an LSTM and the softmax in training, forward and backward, by the native kernel.

Shapes: S tokens in packed order, B rows of the first step, D inputs, N cell, P projection; n positions,
K words.
"""

import ctypes
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmokit.kernels.gates import LayerWeights, LSTMShape, add_to_forget_gate
from elmokit.kernels.native.library import (
    NativeEngine,
    SoftmaxCall,
    TrainingCall,
    address,
    call,
    native_library,
)


class NativeTrainingLSTM(torch.autograd.Function):
    """What `lstm_training._LSTM` is, computed by the native kernel."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        x: Tensor,
        input_weight: Tensor,
        state_weight: Tensor,
        bias: Tensor,
        projection: Tensor | None,
        start: tuple[Tensor, Tensor] | None,
        step_sizes: Sequence[int],
        resets: list[Tensor] | None,
        shape: LSTMShape,
        engine: NativeEngine,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return (S, P), and hidden and cell of the last step."""
        dim, cells = state_weight.shape[1], shape.cell_dim
        weights = LayerWeights(input_weight, state_weight, bias, projection).apply(Tensor.contiguous)
        out, end_cell = x.new_empty(len(x), dim), x.new_empty(step_sizes[-1], cells)  # (S, P), (b, N)
        run = _LayerCall(x.contiguous(), weights, start, step_sizes, resets, shape)
        fields = run.fields()
        library = native_library()
        assert library is not None
        size = library.elmokit_lstm_kept(*engine.codes, ctypes.byref(fields))
        kept = torch.empty(size, dtype=torch.uint8)
        fields.kept, fields.out, fields.end_cell = kept.data_ptr(), out.data_ptr(), end_cell.data_ptr()
        call("lstm_forward", *engine.codes, ctypes.byref(fields))
        ctx.save_for_backward(out)
        ctx.run, ctx.kept, ctx.engine = run, kept, engine
        hidden = out[len(out) - step_sizes[-1] :].clone()
        ctx.mark_non_differentiable(hidden, end_cell)
        return out, hidden, end_cell

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_out: Tensor, _hidden: Tensor, _cell: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        """Return the gradients of x and of the weights."""
        (out,) = ctx.saved_tensors
        run, kept = ctx.run, ctx.kept
        if kept is None:
            raise RuntimeError("backward ran a second time, but the first has overwritten the gates")
        ctx.run = ctx.kept = None
        grad_out = grad_out.contiguous()
        grads = [None if part is None else torch.empty_like(part) for part in (run.x, *run.weights)]
        fields = run.fields()
        fields.kept, fields.out, fields.grad_out = (
            kept.data_ptr(),
            out.data_ptr(),
            address(grad_out, *out.shape),
        )
        names = ("grad_x", "grad_input_weight", "grad_state_weight", "grad_bias", "grad_projection")
        for name, grad in zip(names, grads, strict=True):
            setattr(fields, name, None if grad is None else grad.data_ptr())
        call("lstm_backward", *ctx.engine.codes, ctypes.byref(fields))
        return (*grads, *(None,) * 5)


class _LayerCall:
    """The arguments of a layer, kept alive from forward to backward."""

    def __init__(
        self,
        x: Tensor,
        weights: LayerWeights,
        start: tuple[Tensor, Tensor] | None,
        step_sizes: Sequence[int],
        resets: list[Tensor] | None,
        shape: LSTMShape,
    ) -> None:
        self.x, self.weights, self._shape = x, weights, shape
        self._bias = add_to_forget_gate(weights.bias, shape.forget_bias)  # (4N,)
        self._start = None if start is None else (start[0].contiguous(), start[1].contiguous())
        self._sizes = torch.tensor(step_sizes, dtype=torch.int32)  # (T,)
        self._keep = None
        if resets is not None and any(len(rows) for rows in resets):
            self._keep = x.new_ones(len(x))  # (S,)
            begins = self._sizes.cumsum(0) - self._sizes
            self._keep[torch.cat([rows + begin for rows, begin in zip(resets, begins, strict=True)])] = 0.0

    def fields(self) -> TrainingCall:
        """Return what the library needs to know, after a check of all tensors."""
        weights, shape, rows = self.weights, self._shape, len(self.x)
        cells, (dim, batch) = shape.cell_dim, (weights.state_weight.shape[1], int(self._sizes[0]))
        projected = weights.projection is not None
        output_clip = shape.projection_clip if projected else None
        return TrainingCall(
            inputs=self.x.shape[1],
            outputs=dim,
            cells=cells,
            cell_clip=math.inf if shape.cell_clip is None else shape.cell_clip,
            output_clip=math.inf if output_clip is None else output_clip,
            input_weight=address(weights.input_weight, 4 * cells, self.x.shape[1]),
            state_weight=address(weights.state_weight, 4 * cells, dim),
            bias=address(self._bias, 4 * cells),
            projection=None if weights.projection is None else address(weights.projection, dim, cells),
            rows=rows,
            sizes=address(self._sizes, len(self._sizes), dtype=torch.int32),
            steps=len(self._sizes),
            x=address(self.x, rows, self.x.shape[1]),
            keep=None if self._keep is None else address(self._keep, rows),
            hidden=None if self._start is None else address(self._start[0], batch, dim),
            cell=None if self._start is None else address(self._start[1], batch, cells),
        )


class SoftmaxGradients(NamedTuple):
    """The summed loss of n positions, and the gradients of that sum."""

    loss: float
    hidden: Tensor  # (n, P)
    weight: Tensor  # (K, P)
    bias: Tensor  # (K,)
    score: Tensor | None  # (n,), if scores of targets were given


def native_softmax(
    engine: NativeEngine, hidden: Tensor, weight: Tensor, bias: Tensor, column: Tensor, score: Tensor | None
) -> SoftmaxGradients:
    """Return the summed loss of n positions and the gradients of that sum.

    Args:
        engine: Instruction set and precision.
        hidden: (n, P).
        weight: (K, P).
        bias: (K,).
        column: (n,) the target among the K words; with `score` the word to leave out, or -1.
        score: (n,) the score of the target, if it stands beside the K words.
    """
    hidden, weight, bias = hidden.contiguous(), weight.detach().contiguous(), bias.detach().contiguous()
    (positions, dim), words = hidden.shape, len(weight)
    sums, shifted = hidden.new_empty(2, positions)  # (n,) each
    grads = [torch.empty_like(part) for part in (hidden, weight, bias)]
    grad_score = None if score is None else torch.empty_like(score)
    fields = SoftmaxCall(
        positions=positions,
        words=words,
        dim=dim,
        hidden=address(hidden, positions, dim),
        weight=address(weight, words, dim),
        bias=address(bias, words),
        column=address(column, positions, dtype=torch.int64),
        score=None if score is None else address(score, positions),
        total=sums.data_ptr(),
        shifted=shifted.data_ptr(),
        grad_hidden=grads[0].data_ptr(),
        grad_weight=grads[1].data_ptr(),
        grad_bias=grads[2].data_ptr(),
        grad_score=None if grad_score is None else grad_score.data_ptr(),
    )
    if positions:
        call("softmax", *engine.codes, ctypes.byref(fields))
    loss = float((sums.log() - shifted).double().sum())
    return SoftmaxGradients(loss, grads[0], grads[1], grads[2], grad_score)
