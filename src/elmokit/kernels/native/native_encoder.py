"""What token encoders train: convolution and linear layers by the native kernel, forward and backward.

Shapes: U types, C characters of a type, n characters of the table.
"""

import ctypes
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmokit.kernels.native.library import ConvolutionCall, LinearCall, NativeEngine, address, call


class NativeMaxima(torch.autograd.Function):
    """The largest sum of table rows over all windows of a type, for every filter of one width."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        table: Tensor,
        ids: Tensor,
        used: Tensor,
        width: int,
        engine: NativeEngine,
    ) -> Tensor:
        """Return (U, filters) for a table (width · n, filters), ids (U, C) and used (U,)."""
        out = table.new_empty(len(ids), table.shape[1])  # (U, filters)
        best = torch.empty_like(out)
        table, ids, used = table.contiguous(), ids.long().contiguous(), used.long().contiguous()
        fields = ConvolutionCall(
            tokens=len(ids),
            length=ids.shape[1],
            width=width,
            characters=len(table) // width,
            filters=table.shape[1],
            ids=address(ids, *ids.shape, dtype=torch.int64),
            used=address(used, len(ids), dtype=torch.int64),
            table=address(table, *table.shape),
            out=out.data_ptr(),
            best=best.data_ptr(),
        )
        call("maxima", *engine.codes, ctypes.byref(fields))
        ctx.kept, ctx.fields, ctx.engine = (table, ids, used, best), fields, engine
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        """Return the gradient of the table."""
        table, _, _, best = ctx.kept
        grad_table, grad_out = torch.empty_like(table), grad_out.contiguous()
        ctx.fields.grad_out = address(grad_out, *best.shape)
        ctx.fields.grad_table = grad_table.data_ptr()
        call("maxima", *ctx.engine.codes, ctypes.byref(ctx.fields))
        return grad_table, None, None, None, None


class NativeLinear(torch.autograd.Function):
    """x Wᵀ + b."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, engine: NativeEngine) -> Tensor:  # noqa: ANN401
        """Return (U, out) for x (U, in), weight (out, in) and bias (out,)."""
        x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
        out = x.new_empty(len(x), len(weight))
        fields = _linear_call(x, weight, bias)
        fields.out = out.data_ptr()
        if len(x):
            call("linear", *engine.codes, ctypes.byref(fields))
        ctx.save_for_backward(x, weight, bias)
        ctx.engine = engine
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        """Return the gradients of x, weight and bias."""
        x, weight, bias = ctx.saved_tensors
        grads = [torch.zeros_like(part) for part in (x, weight, bias)]
        grad_out, fields = grad_out.contiguous(), _linear_call(x, weight, bias)
        fields.grad_out = address(grad_out, len(x), len(weight))
        fields.grad_x, fields.grad_weight, fields.grad_bias = (grad.data_ptr() for grad in grads)
        if len(x):
            call("linear", *ctx.engine.codes, ctypes.byref(fields))
        return (*grads, None)


def _linear_call(x: Tensor, weight: Tensor, bias: Tensor) -> LinearCall:
    rows, (outputs, inputs) = len(x), weight.shape
    return LinearCall(
        rows=rows,
        inputs=inputs,
        outputs=outputs,
        x=address(x, rows, inputs),
        weight=address(weight, outputs, inputs),
        bias=address(bias, outputs),
    )
