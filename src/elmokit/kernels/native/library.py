"""The native library: found, loaded, and asked which engines this CPU has.

An engine is an instruction set: "avx2", "avxvnni", "avx512", "avx512vnni", "avx512bf16". The environment
variable ELMOKIT_KERNEL names one to be used instead of the best, or "torch" for none.
"""

import ctypes
import logging
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import get_args
from weakref import WeakSet

import torch
from torch import Tensor

from elmokit.errors import ConfigError
from elmokit.kernels.precision import Precision, has_tiles

logger = logging.getLogger(__name__)

LIBRARY = Path(__file__).with_name("libelmokit_native.so")
_VERSION = 3
_NUMBERS: dict[Precision, int] = {"float32": 0, "bfloat16": 1, "int8": 2}
_CODES = {1: "memory ran out", 2: "arguments are inconsistent"}

_pointer, _long, _int, _float = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32, ctypes.c_float


class NativeCall(ctypes.Structure):
    """One call of an LSTM; `matrix.h` says what the fields mean."""

    _fields_ = (
        ("x", _pointer),
        ("rows", _long),
        ("index", _pointer),
        ("sizes", _pointer),
        ("steps", _long),
        ("batch", _long),
        ("hidden", _pointer),
        ("cell", _pointer),
        ("hidden_stride", _long),
        ("cell_stride", _long),
        ("out", _pointer),
        ("layer_stride", _long),
        ("row_stride", _long),
        ("end_hidden", _pointer),
        ("end_cell", _pointer),
    )


class TrainingCall(ctypes.Structure):
    """One layer of an LSTM in training; `matrix.h` says what the fields mean."""

    _fields_ = (
        *((name, _long) for name in ("inputs", "outputs", "cells")),
        *((name, _float) for name in ("cell_clip", "output_clip")),
        *((name, _pointer) for name in ("input_weight", "state_weight", "bias", "projection")),
        ("rows", _long),
        ("sizes", _pointer),
        ("steps", _long),
        *((name, _pointer) for name in ("x", "keep", "hidden", "cell", "out", "end_cell", "kept")),
        *((name, _pointer) for name in ("grad_out", "grad_x", "grad_input_weight", "grad_state_weight")),
        *((name, _pointer) for name in ("grad_bias", "grad_projection")),
    )


class SoftmaxCall(ctypes.Structure):
    """One softmax in training; `matrix.h` says what the fields mean."""

    _fields_ = (
        *((name, _long) for name in ("positions", "words", "dim")),
        *((name, _pointer) for name in ("hidden", "weight", "bias", "column", "score", "total", "shifted")),
        *((name, _pointer) for name in ("grad_hidden", "grad_weight", "grad_bias", "grad_score")),
    )


class ConvolutionCall(ctypes.Structure):
    """One convolution in training; `matrix.h` says what the fields mean."""

    _fields_ = (
        *((name, _long) for name in ("tokens", "length", "width", "characters", "filters")),
        *((name, _pointer) for name in ("ids", "used", "table", "out", "best", "grad_out", "grad_table")),
    )


class LinearCall(ctypes.Structure):
    """A linear layer in training; `matrix.h` says what the fields mean."""

    _fields_ = (
        *((name, _long) for name in ("rows", "inputs", "outputs")),
        *((name, _pointer) for name in ("x", "weight", "bias", "out")),
        *((name, _pointer) for name in ("grad_out", "grad_x", "grad_weight", "grad_bias")),
    )


_FUNCTIONS = {
    "version": (_int, []),
    "num_engines": (_int, []),
    "engine_name": (ctypes.c_char_p, [_int]),
    "supports": (_int, [_int, _int]),
    "product_new": (_pointer, [_int, _int, _long, _long, _long, _pointer, _pointer, _float]),
    "product_free": (None, [_pointer]),
    "product_memory": (_long, [_pointer, _long, ctypes.POINTER(_pointer)]),
    "product_run": (_int, [_pointer, _pointer, _long, _pointer, _int]),
    "lstm_new": (_pointer, [_int, _int, _long, _long, _int, _float, _float]),
    "lstm_add": (_int, [_pointer, _pointer, _pointer, _pointer, _pointer]),
    "lstm_free": (None, [_pointer]),
    "lstm_memory": (_long, [_pointer, _long, ctypes.POINTER(_pointer)]),
    "lstm_run": (_int, [_pointer, ctypes.POINTER(NativeCall)]),
    "lstm_kept": (_long, [_int, _int, ctypes.POINTER(TrainingCall)]),
    "lstm_forward": (_int, [_int, _int, ctypes.POINTER(TrainingCall)]),
    "lstm_backward": (_int, [_int, _int, ctypes.POINTER(TrainingCall)]),
    "softmax": (_int, [_int, _int, ctypes.POINTER(SoftmaxCall)]),
    "linear": (_int, [_int, _int, ctypes.POINTER(LinearCall)]),
    "maxima": (_int, [_int, _int, ctypes.POINTER(ConvolutionCall)]),
    "activate": (_int, [_int, _int, _pointer, _long, _pointer, _int]),
    "peak": (ctypes.c_double, [_int, _int, _long]),
}


_alive: "WeakSet[NativeObject]" = WeakSet()
_numbers = count()


@dataclass(frozen=True)
class NativeEngine:
    """An instruction set for products of one precision."""

    name: str
    precision: Precision

    @property
    def codes(self) -> tuple[int, int]:
        """What the library calls the engine and its numbers."""
        return _engine_names().index(self.name), _NUMBERS[self.precision]


@lru_cache(maxsize=1)
def native_library() -> ctypes.CDLL | None:
    """Return the library; None without one, or, after a warning with the reason, if it cannot be loaded."""
    if not LIBRARY.exists():  # installed without a compiler, or on another kind of CPU
        return None
    try:
        _check_whole(LIBRARY)
        library = ctypes.CDLL(str(LIBRARY))
        version = library.elmokit_version()
        if version != _VERSION:
            raise OSError(
                f"it has version {version} of the interface, expected {_VERSION}; install elmokit again"
            )
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, f"elmokit_{name}")
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError, struct.error) as error:
        logger.warning("the native kernel cannot be loaded, torch is used instead: %s", error)
        return None
    return library


def _check_whole(path: Path) -> None:
    """Raise an OSError if an ELF library is cut short: loading it would end the process."""
    with path.open("rb") as file:
        header = file.read(64)
    if header[:4] != b"\x7fELF":  # another format, which the loader judges
        return
    # The table of sections is the last part of the file: its place, the size and number of its entries.
    place, (size, count) = struct.unpack_from("<Q", header, 40)[0], struct.unpack_from("<HH", header, 58)
    if path.stat().st_size < place + size * count:
        raise OSError(f"{path} is cut short; install elmokit again")


def call(name: str, *arguments: object) -> int:
    """Call a function that returns a code.

    Raises:
        ConfigError: Its code says that something is wrong.
        MemoryError: Memory ran out.
    """
    library = native_library()
    assert library is not None  # there is an engine only where there is a library
    code: int = getattr(library, f"elmokit_{name}")(*arguments)
    if code == 1:
        raise MemoryError(f"native kernel: {_CODES[code]} in {name}")
    if code:
        raise ConfigError(f"native kernel: {_CODES.get(code, code)} in {name}")
    return code


@lru_cache(maxsize=1)
def _engine_names() -> list[str]:
    library = native_library()
    if library is None:
        return []
    return [library.elmokit_engine_name(number).decode() for number in range(library.elmokit_num_engines())]


def engines(precision: Precision) -> list[NativeEngine]:
    """Return the engines that this CPU has for that precision, the best last."""
    found = [NativeEngine(name, precision) for name in _engine_names()]
    library = native_library()
    return [one for one in found if library is not None and library.elmokit_supports(*one.codes)]


def find_engine(precision: Precision, device: torch.device | None = None) -> NativeEngine | None:
    """Return the engine to use, or None where torch has to do.

    Raises:
        ConfigError: ELMOKIT_KERNEL names an engine that there is not.
    """
    wanted = os.environ.get("ELMOKIT_KERNEL", "")
    if wanted == "torch" or (device is not None and device.type != "cpu"):
        return None
    if not wanted:
        return next(reversed(engines(precision)), None)
    here = {one.name for each in get_args(Precision) for one in engines(each)}
    if wanted not in here:
        choices = ", ".join(["torch", *(name for name in _engine_names() if name in here)])
        raise ConfigError(f"ELMOKIT_KERNEL must be one of {choices} on this machine, found {wanted!r}")
    return next((one for one in engines(precision) if one.name == wanted), None)


def training_engine(precision: Precision, x: Tensor) -> NativeEngine | None:
    """Return the engine that trains with products of that precision, or None where torch has to do.

    There is none for other numbers than float32 on the CPU, for int8, and for bfloat16 on a CPU with tiles
    (AMX), which torch uses.
    """
    if precision == "int8" or x.dtype != torch.float32 or (precision == "bfloat16" and has_tiles()):
        return None
    return find_engine(precision, x.device)


def address(tensor: Tensor, *shape: int, dtype: torch.dtype = torch.float32) -> int:
    """Return where the numbers of a tensor lie, after a check that they are what the library expects.

    Raises:
        ConfigError: The tensor has another shape or type, is not contiguous or not on the CPU.
    """
    if tensor.shape != shape or tensor.dtype != dtype or not tensor.is_contiguous() or not tensor.is_cpu:
        raise ConfigError(
            f"the native kernel expected a contiguous tensor {shape} of {dtype} on the CPU, found "
            f"{tuple(tensor.shape)} of {tensor.dtype} on {tensor.device}, strides {tensor.stride()}"
        )
    return tensor.data_ptr()


def weight_blocks() -> list[tuple[int, int]]:
    """Return address and size of all packed weights of this process, in the order they were made."""
    objects = sorted(_alive, key=lambda one: one.number)
    return [block for one in objects for block in one.blocks()]


class NativeObject:
    """An object of the library, freed with this one."""

    def __init__(self, kind: str, *arguments: object) -> None:
        library = native_library()
        assert library is not None
        self._free = getattr(library, f"elmokit_{kind}_free")
        self._memory = getattr(library, f"elmokit_{kind}_memory")
        self.number = next(_numbers)
        self.pointer: int | None = getattr(library, f"elmokit_{kind}_new")(*arguments)
        if self.pointer is None:
            raise MemoryError(f"native kernel: no memory for a {kind} of {arguments}")
        _alive.add(self)

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Yield address and size of each block of packed weights."""
        place = ctypes.c_void_p()
        for number in count():
            size: int = self._memory(self.pointer, number, ctypes.byref(place))
            if size < 0:
                return
            if place.value is not None:
                yield place.value, size

    def __del__(self) -> None:
        if getattr(self, "pointer", None) is not None:
            self._free(self.pointer)
