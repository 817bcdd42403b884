"""Matrices packed for the native kernel, with the activation computed where the product ends."""

from typing import Literal, get_args

import torch
from torch import Tensor

from elmokit.errors import ConfigError
from elmokit.kernels.native.library import NativeEngine, NativeObject, address, call

Linear = tuple[Tensor, Tensor | None]
Activation = Literal["none", "relu", "sigmoid", "tanh", "highway"]
# int8 products of so many numbers cannot overflow 32 bits.
_MOST_INPUTS = 65_536


class NativeProduct:
    """A matrix, packed once: x ↦ activation(x Wᵀ + b).

    A "highway" has two, of its gate and of its transform, each (in, in):

        out = x + σ(x W_gᵀ + b_g) · (relu(x W_tᵀ + b_t) - x).

    Args:
        engine: Instruction set and precision.
        linears: Weight (out, in) and bias (out,) or None of each.
        activation: What follows the product.
        bound: What |x| never exceeds, if known: int8 then need not look for each row's range.
    """

    def __init__(
        self,
        engine: NativeEngine,
        *linears: Linear,
        activation: Activation = "none",
        bound: float | None = None,
    ) -> None:
        self._arguments = (engine, linears, activation, bound)  # the model's own weights, not a copy
        weights, biases = zip(*linears, strict=True)
        parts = 2 if activation == "highway" else 1
        self._outputs, self._inputs = weights[0].shape
        if (
            self._inputs > _MOST_INPUTS
            or len(linears) != parts
            or (parts == 2 and self._outputs != self._inputs)
        ):
            shapes = [tuple(weight.shape) for weight in weights]
            raise ConfigError(f"the native kernel takes no weights {shapes} with {activation}")
        weight = torch.cat(weights).detach() if parts > 1 else weights[0].detach().contiguous()
        bias = None if biases[0] is None else torch.cat(biases).detach()
        rows = parts * self._outputs
        self._activation = get_args(Activation).index(activation)
        self._product = NativeObject(
            "product",
            *engine.codes,
            parts,
            self._outputs,
            self._inputs,
            address(weight, rows, self._inputs),
            None if bias is None else address(bias, rows),
            bound or 0.0,
        )

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return _make, self._arguments

    def __call__(self, x: Tensor) -> Tensor:
        """(b, in) → (b, out)."""
        x = x.contiguous()
        out = torch.empty(len(x), self._outputs)
        place = address(x, len(x), self._inputs)
        call("product_run", self._product.pointer, place, len(x), out.data_ptr(), self._activation)
        return out


def _make(
    engine: NativeEngine, linears: tuple[Linear, ...], activation: Activation, bound: float | None
) -> NativeProduct:
    return NativeProduct(engine, *linears, activation=activation, bound=bound)
