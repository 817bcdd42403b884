"""Weights in safetensors, as float32, float16 or int8: matrices row by row, with a `.scale` for each row."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from elmokit.base import check_safetensors
from elmokit.errors import ModelFileError
from elmokit.formats.inspect import describe_file
from elmokit.formats.layout import check_dtypes, check_shapes
from elmokit.kernels import int8_scale

StoredType = Literal["float32", "float16", "int8"]
# Whether a tensor of this name is stored in int8, if that is asked for.
Quantised: TypeAlias = Callable[[str, Tensor], bool]

_DTYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I8": "int8"}
_SCALE = ".scale"  # suffix of the tensor that holds the scale of each int8 row


def all_matrices(_: str, tensor: Tensor) -> bool:
    """Store every tensor with rows in int8."""
    return tensor.dim() > 1


def write_tensors(
    path: Path,
    tensors: Mapping[str, Tensor],
    dtype: StoredType,
    *,
    quantised: Quantised = all_matrices,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write tensors to a file.

    Raises:
        ModelFileError: a number is not finite, or too large for `dtype`.
    """
    stored: dict[str, Tensor] = {}
    for key, tensor in tensors.items():
        stored |= _stored(key, tensor.detach().cpu(), dtype, quantised)
    save_file(stored, path, metadata={"format": "pt"} | dict(metadata or {}))


def _stored(key: str, tensor: Tensor, dtype: StoredType, quantised: Quantised) -> dict[str, Tensor]:
    """Return what is stored for a tensor: itself, or int8 numbers and their scales."""
    if dtype == "int8" and quantised(key, tensor):
        scale = int8_scale(tensor.float())  # (…), one for each row
        stored = {key: (tensor / scale[..., None]).round().to(torch.int8), key + _SCALE: scale}
    else:
        stored = {key: tensor.to(torch.float16 if dtype == "float16" else torch.float32)}
    if not all(torch.isfinite(part).all() for part in stored.values()):
        raise ModelFileError(
            f"{key} has numbers that {dtype} cannot hold, or that are not finite; use float32"
        )
    return {name: part.contiguous() for name, part in stored.items()}


def read_tensors(path: Path, check: Callable[[dict[str, tuple[int, ...]]], None]) -> dict[str, Tensor]:
    """Return the file's tensors in float32, after `check` has seen their shapes.

    They are copies: the file may later be overwritten, truncated or deleted.
    """
    try:
        check_safetensors(path)
        with safe_open(path, framework="pt") as file:
            shapes = tensor_shapes(path, file)
            check(shapes)
            scaled = {name.removesuffix(_SCALE) for name in file.keys() if name.endswith(_SCALE)}  # noqa: SIM118
            return {name: _read(path, file, name, scaled=name in scaled) for name in shapes}
    except (OSError, SafetensorError, ValueError) as error:
        raise ModelFileError(
            f"{path}: cannot be read as safetensors: it is {describe_file(path)} ({error}); get it again"
        ) from error


def tensor_shapes(path: Path, file: Any) -> dict[str, tuple[int, ...]]:  # noqa: ANN401 (safetensors has no types)
    """Return the shape of each tensor; every int8 tensor has a scale for each row, and only these have."""
    slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
    shapes = {name: tuple(part.get_shape()) for name, part in slices.items()}
    dtypes = {name: _DTYPES.get(part.get_dtype(), part.get_dtype()) for name, part in slices.items()}
    scaled = [name for name, dtype in dtypes.items() if dtype == "int8"]
    expected = {name + _SCALE: shapes[name][:-1] for name in scaled}
    scales = {name: shapes[name] for name in shapes if name.endswith(_SCALE)}
    what = f"{path}: int8 weights and their scales"
    check_shapes(expected, scales, what, "use the files that were saved together")
    check_dtypes(path, {name: dtype for name, dtype in dtypes.items() if name not in scaled})
    return {name: shape for name, shape in shapes.items() if name not in scales}


def _read(path: Path, file: Any, name: str, *, scaled: bool) -> Tensor:  # noqa: ANN401 (safetensors has no types)
    tensor: Tensor = file.get_tensor(name).to(torch.float32, copy=True)  # the file's memory is mapped
    if not scaled:
        return tensor
    scale = file.get_tensor(name + _SCALE).float()
    if not (torch.isfinite(scale) & (scale > 0)).all():
        raise ModelFileError(f"{path}: {name + _SCALE} has numbers that are no scales; get it again")
    return tensor.mul_(scale[..., None])
