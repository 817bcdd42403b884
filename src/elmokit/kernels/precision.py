"""Matrix products in float32, int8 or bfloat16, and which of these this machine does natively.

This is the only place that knows torch's low-precision operators, because they keep changing. Everything but
the products (cell state, gates, clips, skips, sums) is float32 whatever the precision.
"""

import platform
import warnings
from functools import cached_property
from typing import Literal, Protocol, get_args

import torch
from torch import Tensor

from elmokit.errors import ConfigError

Precision = Literal["float32", "int8", "bfloat16"]

# Products treat the rows of a last, incomplete group of this many differently, in the last bit. With whole
# groups the result of a row is the same whatever rows stand beside it.
ROWS_TOGETHER = 8

_INT8_MAX = 127
_FEW_ROWS = 3
# Panels of 2 MB, but never narrow ones; a matrix of fewer than four panels is as fast in one piece.
_PANEL_NUMBERS = 512 * 1024
_PANEL_COLUMNS = 256
_WORTH_PANELS = 4
_TINY = torch.finfo(torch.float32).tiny


class Product(Protocol):
    """A matrix laid out once for fast products: x ↦ x · Wᵀ + b."""

    def __call__(self, x: Tensor, space: Tensor | None = None) -> Tensor:
        """Return x · Wᵀ + b, (b, in) → (b, out) in float32, written into `space` (b, out) if given."""
        ...

    def add_to(self, target: Tensor, x: Tensor) -> None:
        """Add x · Wᵀ to `target` (b, out) in place."""
        ...

    def into(self, target: Tensor, x: Tensor) -> None:
        """Write x · Wᵀ into `target` (b, out)."""
        ...


def supported(device: str = "cpu") -> list[Precision]:
    """Return what this machine does natively, fastest last.

    * int8 needs FBGEMM, which needs AVX2; with VNNI it is several times as fast as float32, without it less.
    * bfloat16 needs AVX512-BF16 or AMX: elsewhere it is emulated and slower than float32. GPUs do it.
    """
    if device != "cpu":
        return ["float32", "bfloat16"]
    found: list[Precision] = ["float32"]
    if _cpu_has("avx512_bf16") or has_tiles():
        found.append("bfloat16")
    if platform.machine().lower() in ("x86_64", "amd64") and _cpu_has("avx2"):
        # bfloat16 is fastest only where torch has AMX tiles for it: elsewhere int8 takes half of its time.
        found.insert(1 if has_tiles() and not _native_int8() else len(found), "int8")
    return found


def _native_int8() -> bool:
    """Whether the native kernel computes int8."""
    from elmokit.kernels.native import find_engine  # it needs this module

    return find_engine("int8") is not None


def has_tiles() -> bool:
    """Whether the CPU multiplies tiles of bfloat16 (AMX)."""
    return _cpu_has("amx_tile")


def _cpu_has(name: str) -> bool:
    """Ask torch; some versions do not know some names."""
    ask = getattr(torch.cpu, f"_is_{name}_supported", None)
    return ask is not None and bool(ask())


def resolve(name: str, device: str = "cpu") -> Precision:
    """Return the precision of that name; "auto" is the fastest that the machine does natively.

    Raises:
        ConfigError: There is no such precision, or it would be slower than float32 here.
    """
    native = supported(device)
    if name == "auto":
        return native[-1]
    for precision in native:
        if precision == name:
            return precision
    if name in get_args(Precision):
        raise ConfigError(
            f"precision {name!r} is not native to this machine ({device}) and would be slower than float32; "
            f"use one of {', '.join(native)}, or 'auto'"
        )
    raise ConfigError(f"precision must be one of {', '.join(get_args(Precision))} or auto, found {name!r}")


def training_precision(device: str = "cpu") -> Precision:
    """Return bfloat16 where it is native, else float32."""
    return "bfloat16" if "bfloat16" in supported(device) else "float32"


def multiply(a: Tensor, b: Tensor, precision: Precision) -> Tensor:
    """Return a · b in float32, computed from factors of that precision (float32 or bfloat16)."""
    if precision == "bfloat16":
        return (a.bfloat16() @ b.bfloat16()).float()
    return a @ b


def make_product(
    precision: Precision, weight: Tensor, bias: Tensor | None = None, *, bound: float | None = None
) -> Product:
    """Lay out a matrix.

    Args:
        precision: Of the product.
        weight: (out, in).
        bias: (out,), added only by `__call__`.
        bound: What |x| never exceeds, if known: int8 then need not look for the range of each row.
    """
    weight, bias = weight.detach(), None if bias is None else bias.detach()
    if precision == "int8":
        return _Int8(weight, bias, bound)
    return _BFloat16(weight, bias) if precision == "bfloat16" else _Float32(weight, bias)


class _Float32:
    """Plain products. New memory for a large result costs as much as the product itself: hence `space`.

    A matrix too large for the processor's cache is multiplied panel by panel, each with some of its outputs,
    because the library copies a matrix for each product and the cache has room for both copies of a panel.
    The sums are the same.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        num_outputs, num_inputs = weight.shape
        columns = max(_PANEL_COLUMNS, _PANEL_NUMBERS // max(num_inputs, 1))
        in_one = num_outputs < _WORTH_PANELS * columns or weight.device.type != "cpu"
        self._columns = max(num_outputs, 1) if in_one else columns
        self._weight = weight.contiguous().T  # (in, out)
        self._panels = torch.split(self._weight, self._columns, dim=1)
        self._bias = bias

    def __call__(self, x: Tensor, space: Tensor | None = None) -> Tensor:
        if self._bias is None:
            return torch.mm(x, self._weight, out=space)
        if len(self._panels) == 1:
            return torch.addmm(self._bias, x, self._weight, out=space)
        out = x.new_empty(x.shape[0], self._weight.shape[1]) if space is None else space
        self._add_panels(out.copy_(self._bias), x)
        return out

    @cached_property
    def _weight_by_input(self) -> Tensor:
        """Lay out the matrix the other way: up to twice as fast for a few rows, slower for more."""
        return self._weight.contiguous()  # (in, out)

    def add_to(self, target: Tensor, x: Tensor) -> None:
        if x.shape[0] <= _FEW_ROWS:
            target.addmm_(x, self._weight_by_input)
        elif len(self._panels) == 1:
            target.addmm_(x, self._weight)
        else:
            self._add_panels(target, x)

    def _add_panels(self, target: Tensor, x: Tensor) -> None:
        parts = torch.split(target, self._columns, dim=1)
        for part, panel in zip(parts, self._panels, strict=True):
            part.addmm_(x, panel)

    def into(self, target: Tensor, x: Tensor) -> None:
        torch.mm(x, self._weight, out=target)


class _BFloat16:
    """Factors in bfloat16; the product sums in float32."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self._weight = weight.bfloat16().contiguous().T  # (in, out)
        self._bias = bias

    def __call__(self, x: Tensor, space: Tensor | None = None) -> Tensor:
        out = x.bfloat16() @ self._weight
        out = out.float() if space is None else space.copy_(out)
        return out if self._bias is None else out.add_(self._bias)

    def add_to(self, target: Tensor, x: Tensor) -> None:
        target.add_(x.bfloat16() @ self._weight)

    def into(self, target: Tensor, x: Tensor) -> None:
        target.copy_(x.bfloat16() @ self._weight)


class _Int8:
    """Weights in int8 by output channel, x in int8 by row (FBGEMM).

    FBGEMM takes one range for all of x, so the result of a row would depend on the rows beside it. Here every
    row is first divided by its largest number, and a row that holds 1 and -1 is put in front, so that the
    range is always the same: each row is quantised by itself, more finely, and alike in any batch. If x has a
    known bound, that first row holds the bound, and nothing is divided.

    Without VNNI the processor adds pairs of products in 16 bits, which overflow unless x has only 7 bits.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, bound: float | None) -> None:
        scale = int8_scale(weight).double()  # (out,)
        zero = torch.zeros(len(scale), dtype=torch.long)
        with warnings.catch_warnings():  # deprecated, with nothing yet to take its place on the CPU
            warnings.filterwarnings("ignore", "torch.quantize_per_tensor")
            quantised = torch.quantize_per_channel(weight.contiguous(), scale, zero, 0, torch.qint8)
        self._packed = torch.ops.quantized.linear_prepack(quantised, None)
        self._seven_bits = not _cpu_has("vnni")
        self._bias = bias
        self._one = torch.ones(()) if bound is not None else None
        self._range = torch.zeros(1, weight.shape[1])
        if weight.shape[1] > 1:
            self._range[0, :2] = torch.tensor([1.0, -1.0]) * (bound or 1.0)

    def _multiply(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return (b, out) and (b, 1) or a number, whose product is x · Wᵀ."""
        rows = torch.cat([self._range, x])  # (1 + b, in)
        if self._one is not None:
            largest = self._one
        else:
            # (b, 1); to take |x| first costs more
            largest = torch.maximum(x.amax(1, keepdim=True), -x.amin(1, keepdim=True))
            rows[1:].div_(largest.clamp_min_(_TINY))
        out: Tensor = torch.ops.quantized.linear_dynamic(rows, self._packed, self._seven_bits)  # (1 + b, out)
        return out[1:], largest

    def __call__(self, x: Tensor, space: Tensor | None = None) -> Tensor:
        out, largest = self._multiply(x)
        if self._bias is None:
            return torch.mul(out, largest, out=space)
        return torch.addcmul(self._bias, out, largest, out=space)

    def add_to(self, target: Tensor, x: Tensor) -> None:
        target.addcmul_(*self._multiply(x))

    def into(self, target: Tensor, x: Tensor) -> None:
        torch.mul(*self._multiply(x), out=target)


def int8_scale(weight: Tensor) -> Tensor:
    """Return what one step of int8 is worth in each row, (…, in) → (…); never zero."""
    return (weight.abs().amax(dim=-1) / _INT8_MAX).clamp_min(_TINY)
