"""Torch or native: which implementation computes the LSTM and the token encoder of an embedder.

The native kernel is taken where it was compiled and the CPU has an engine for the precision; ELMOKIT_KERNEL
chooses another (see `native.library`). Both compute the same, up to rounding.

Shapes: U types, F filters, P projection.
"""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmokit.kernels.gates import LayerWeights, LSTMShape
from elmokit.kernels.lstm_inference import InferenceLSTM
from elmokit.kernels.native import (
    NativeEngine,
    NativeLinear,
    NativeLSTM,
    NativeMaxima,
    NativeProduct,
    find_engine,
    training_engine,
)
from elmokit.kernels.precision import Precision, Product, make_product
from elmokit.kernels.threads import side_by_side


def engine_name(precision: Precision, device: str = "cpu") -> str:
    """Return the name of the engine that embeds in that precision: an instruction set, or "torch"."""
    engine = find_engine(precision) if device == "cpu" else None
    return "torch" if engine is None else engine.name


def training_engine_name(precision: Precision, weight: Tensor) -> str:
    """Return the name of the engine that trains weights like this one with products of that precision."""
    engine = training_engine(precision, weight)
    return "torch" if engine is None else engine.name


def make_inference_lstm(
    layers: Sequence[Sequence[LayerWeights]], shape: LSTMShape, precision: Precision
) -> InferenceLSTM | NativeLSTM:
    """Lay out all layers of an LSTM; see `InferenceLSTM`."""
    engine = _engine_for(precision, layers[0][0].input_weight) if layers else None
    return InferenceLSTM(layers, shape, precision) if engine is None else NativeLSTM(layers, shape, engine)


def make_linear(precision: Precision, linear: nn.Linear) -> Callable[[Tensor], Tensor]:
    """Lay out a linear layer: (U, in) → (U, out)."""
    engine = _engine_for(precision, linear.weight)
    if engine is None:
        return make_product(precision, linear.weight, linear.bias)
    return NativeProduct(engine, (linear.weight, linear.bias))


def make_highway(precision: Precision, gate: nn.Linear, transform: nn.Linear) -> Callable[[Tensor], Tensor]:
    """Lay out a highway, (U, F) → (U, F): g = σ(W_g x + b_g);  y = g · relu(W_t x + b_t) + (1 - g) · x."""
    engine = _engine_for(precision, gate.weight)
    if engine is None:
        return _TorchHighway([make_product(precision, part.weight, part.bias) for part in (gate, transform)])
    linears = (gate.weight, gate.bias), (transform.weight, transform.bias)
    return NativeProduct(engine, *linears, activation="highway")


class TrainedLinear(nn.Linear):
    """A linear layer of a token encoder, (U, in) → (U, out), trained by the native kernel if there is one."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x Wᵀ + b."""
        engine = None if torch.is_autocast_enabled(x.device.type) else _engine_for("float32", self.weight)
        if engine is None or x.dtype != torch.float32 or not torch.is_grad_enabled():
            return super().forward(x)
        return NativeLinear.apply(x, self.weight, self.bias, engine)  # type: ignore[no-any-return, no-untyped-call]


def window_maxima(
    ids: Tensor, used: Tensor, widths: Sequence[int], tables: Sequence[Tensor]
) -> Tensor | None:
    """Convolve characters by the native kernel; None where torch has to do.

    Args:
        ids: (U, C) character ids.
        used: (U,) how many ids of a row stand before its padding.
        widths: Of the filters.
        tables: (width · n, filters) for each width: what each character adds at each place of a window.

    Returns:
        (U, F) the largest sum over all windows, for every filter.
    """
    engine = training_engine("float32", tables[0])
    if engine is None:
        return None
    ids = ids.long().contiguous()  # once for all widths
    maxima = [
        NativeMaxima.apply(table, ids, used, width, engine)  # type: ignore[no-untyped-call]
        for width, table in zip(widths, tables, strict=True)
    ]
    return torch.cat(maxima, dim=1)


class _TorchHighway:
    """A highway of two products."""

    def __init__(self, products: list[Product]) -> None:
        self._products = products

    def __call__(self, x: Tensor) -> Tensor:
        # For the few new words of one sentence the time goes into reading the weights: each thread half.
        gate, transformed = side_by_side(partial(_apply, x), self._products, x.device)  # (U, F) each
        return torch.lerp(x, functional.relu_(transformed), gate.sigmoid_())


def _apply(x: Tensor, product: Product) -> Tensor:
    return product(x)


def _engine_for(precision: Precision, weight: Tensor) -> NativeEngine | None:
    return find_engine(precision) if weight.is_cpu and weight.dtype == torch.float32 else None
