"""Weights in bilm-tf's HDF5 layout: what AllenNLP, bilm-tf and simple_elmo read.

The layout stands in one table (`_entries`), which reading and writing share. Nothing is read before every
name, shape and stored size has been compared with the options: a file that lies about its size costs nothing.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from torch import Tensor

from elmokit.errors import ModelFileError
from elmokit.formats.bundle import Softmax, SoftmaxFile
from elmokit.formats.inspect import describe_file
from elmokit.formats.options import config_from_options
from elmokit.model import BiLM, BiLMConfig, CharCNNConfig

_OUR_GATES = (0, 2, 1, 3)  # TensorFlow stores i, j, f, o; we keep i, f, j, o. Swapping twice gives it back.
_MAX_DATASETS = 10_000
_OVERHEAD = 1024 * 1024  # more than names, groups and headers take
_MAX_COMPRESSION = 20  # trained weights hardly compress; a dataset that unpacks to more than this is not one


@dataclass(frozen=True)
class _Entry:
    """One dataset of the file and the tensors that it fills.

    Attributes:
        name, shape: of the dataset.
        keys: our tensors; most datasets fill one, an LSTM's kernel two.
        to_ours: the dataset's content → (len(keys), …).
        to_file: the inverse.
        direction: which part of our tensors it fills, when they hold both directions.
    """

    name: str
    shape: tuple[int, ...]
    keys: tuple[str, ...]
    to_ours: Callable[[Tensor], Tensor]
    to_file: Callable[[Tensor], Tensor]
    direction: int | None = None

    def tensors(self, state: dict[str, Tensor]) -> list[Tensor]:
        """The tensors of `state` that it fills, or their part of the one direction."""
        tensors = [state[key] for key in self.keys]
        return tensors if self.direction is None else [tensor[self.direction] for tensor in tensors]


def _add_axis(x: Tensor) -> Tensor:
    return x[None]


def _drop_axis(x: Tensor) -> Tensor:
    return x[0]


def _matrix_to_ours(x: Tensor) -> Tensor:
    return x.T[None]  # (in, out) → (1, out, in)


def _matrix_to_file(x: Tensor) -> Tensor:
    return x[0].T


def _conv_to_ours(x: Tensor) -> Tensor:
    return x.permute(0, 3, 2, 1)  # (1, width, E, number) → (1, number, E, width): its own inverse


def _swap_gates(x: Tensor) -> Tensor:
    """(…, 4N) i, j, f, o ↔ i, f, j, o: its own inverse."""
    return x.view(*x.shape[:-1], 4, -1)[..., _OUR_GATES, :].flatten(-2)


def _bias_to_ours(x: Tensor) -> Tensor:
    return _swap_gates(x)[None]


def _bias_to_file(x: Tensor) -> Tensor:
    return _swap_gates(x[0])


def _kernel_to_ours(x: Tensor) -> Tensor:
    """(2P, 4N), rows of the input and then of the state → (2, 4N, P)."""
    return _swap_gates(x).view(2, -1, x.shape[1]).transpose(1, 2)


def _kernel_to_file(x: Tensor) -> Tensor:
    return _swap_gates(x.transpose(1, 2).flatten(0, 1))


# How a dataset's content becomes ours, and back.
_PLAIN = (_add_axis, _drop_axis)
_MATRIX = (_matrix_to_ours, _matrix_to_file)
_CONVOLUTION = (_conv_to_ours, _conv_to_ours)
_BIAS = (_bias_to_ours, _bias_to_file)
_KERNEL = (_kernel_to_ours, _kernel_to_file)


def _entries(config: BiLMConfig, cell_path: str) -> Iterator[_Entry]:
    """Every dataset that a model of this shape has. `cell_path` has places for direction and layer."""
    yield from _encoder_entries(config)
    cell, dim = config.cell_dim, config.projection_dim
    for layer in range(config.num_layers):
        key = f"layers.{layer}."
        kernels = (key + "input_weight", key + "state_weight")
        for direction in range(2):
            path = cell_path.format(direction=direction, layer=layer)
            yield _Entry(f"{path}/W_0", (2 * dim, 4 * cell), kernels, *_KERNEL, direction)
            yield _Entry(f"{path}/B", (4 * cell,), (key + "bias",), *_BIAS, direction)
            if config.projection:
                yield _Entry(f"{path}/W_P_0", (cell, dim), (key + "projection",), *_MATRIX, direction)


def _encoder_entries(config: BiLMConfig) -> Iterator[_Entry]:
    encoder, dim = config.encoder, config.projection_dim
    if not isinstance(encoder, CharCNNConfig):
        yield _Entry("embedding", (encoder.num_words, dim), ("encoder.weight",), *_PLAIN)
        return
    size, filters = encoder.embedding_dim, encoder.num_filters
    yield _Entry("char_embed", (encoder.num_characters, size), ("encoder.embedding.weight",), *_PLAIN)
    for i, (width, number) in enumerate(encoder.filters):
        key = f"encoder.convolutions.{i}."
        yield _Entry(f"CNN/W_cnn_{i}", (1, width, size, number), (key + "weight",), *_CONVOLUTION)
        yield _Entry(f"CNN/b_cnn_{i}", (number,), (key + "bias",), *_PLAIN)
    for i in range(encoder.num_highway):
        for theirs, ours in (("carry", "gate"), ("transform", "transform")):
            key = f"encoder.highways.{i}.{ours}."
            yield _Entry(f"CNN_high_{i}/W_{theirs}", (filters, filters), (key + "weight",), *_MATRIX)
            yield _Entry(f"CNN_high_{i}/b_{theirs}", (filters,), (key + "bias",), *_PLAIN)
    if encoder.projection:
        yield _Entry("CNN_proj/W_proj", (filters, dim), ("encoder.projection.weight",), *_MATRIX)
        yield _Entry("CNN_proj/b_proj", (dim,), ("encoder.projection.bias",), *_PLAIN)


_MANY_CELLS = "RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
_ONE_CELL = "RNN_{direction}/RNN/LSTMCell"  # what bilm-tf's dumper makes of a model with one layer
_FIRST_KERNELS = (_MANY_CELLS.format(direction=0, layer=0) + "/W_0", _ONE_CELL.format(direction=0) + "/W_0")


# What h5py raises for a damaged file, by where the damage is. No error of our own is among them.
_DAMAGE = (OSError, RuntimeError, KeyError, TypeError, ValueError)


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    """The file opened for reading; whatever HDF5 says against it becomes a ModelFileError."""
    try:
        with h5py.File(path, "r") as file:
            yield file
    except _DAMAGE as error:
        what = describe_file(path)
        raise ModelFileError(
            f"{path}: cannot be read as HDF5 weights: it is {what} ({error}); "
            "if it was downloaded or copied, do that again and compare the sizes"
        ) from error


def dataset_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Name and shape of every dataset; links that lead out of the file are not followed.

    A file of very many datasets is no model but the result of one: what is beyond the limit is left out.
    """
    shapes: dict[str, tuple[int, ...]] = {}

    def note(name: str, item: object) -> bool | None:
        if isinstance(item, h5py.Dataset):
            shapes[name] = tuple(item.shape or ())
        return True if len(shapes) > _MAX_DATASETS else None  # anything but None ends the visit

    with _open(path) as file:
        file.visititems(note)
    return shapes


def holds_weights(shapes: dict[str, tuple[int, ...]]) -> bool:
    """Whether datasets of these names are those of a biLM."""
    return any(name in shapes for name in _FIRST_KERNELS)


def holds_softmax(shapes: dict[str, tuple[int, ...]]) -> bool:
    """Whether datasets of these names are a softmax."""
    return "softmax/W" in shapes and "softmax/b" in shapes


def read_weights(path: Path, options: dict[str, Any]) -> BiLM:
    """Read a model whose sizes the options tell.

    Raises:
        ModelFileError: the file is damaged, or does not fit the options.
        ConfigError: the options cannot be.
    """
    shapes = dataset_shapes(path)
    if not holds_weights(shapes):
        found = ", ".join(sorted(shapes)[:5]) or "nothing"
        raise ModelFileError(
            f"{path}: holds no biLM: expected a dataset {_FIRST_KERNELS[0]!r}, found {found}; "
            "pass the weights file (often *_weights.hdf5 or model.hdf5)"
        )
    cell_path = _MANY_CELLS if _FIRST_KERNELS[0] in shapes else _ONE_CELL
    config = config_from_options(
        options,
        char_projection="CNN_proj/W_proj" in shapes,
        lstm_projection=cell_path.format(direction=0, layer=0) + "/W_P_0" in shapes,
        num_words=shapes["embedding"][0] if shapes.get("embedding") else None,
    )
    entries = list(_entries(config, cell_path))
    with _open(path) as file:
        _check(path, file, entries, shapes)
        return _read_checked(file, config, entries)


def _check(path: Path, file: Any, entries: list[_Entry], shapes: dict[str, tuple[int, ...]]) -> None:  # noqa: ANN401
    wrong = [
        f"{entry.name} is {'missing' if entry.name not in shapes else list(shapes[entry.name])}, "
        f"the options ask for {list(entry.shape)}"
        for entry in entries
        if shapes.get(entry.name) != entry.shape
    ]
    known = {entry.name for entry in entries}
    wrong += [
        f"{name} {list(shape)} has no place in the options"
        for name, shape in shapes.items()
        if name not in known and name.startswith(("RNN_", "CNN", "char_embed"))
    ]
    if wrong:
        more = f" (and {len(wrong) - 3} more)" if len(wrong) > 3 else ""
        raise ModelFileError(
            f"{path}: weights and options do not fit: {'; '.join(wrong[:3])}{more}; "
            "pass the options file that came with these weights"
        )
    for entry in entries:
        _check_stored(path, file[entry.name])


def _check_stored(path: Path, dataset: Any) -> None:  # noqa: ANN401 (h5py has no types)
    stored = dataset.id.get_storage_size()
    least = dataset.nbytes if dataset.chunks is None else dataset.nbytes // _MAX_COMPRESSION - 4096
    if dataset.dtype.kind != "f" or dataset.external or stored < least:
        raise ModelFileError(
            f"{path}: {dataset.name} declares {dataset.nbytes:,} bytes of {dataset.dtype}, "
            f"the file stores {stored:,}; "
            "the file is damaged or not a weights file: get it again"
        )


def _read_checked(file: Any, config: BiLMConfig, entries: list[_Entry]) -> BiLM:  # noqa: ANN401
    with torch.device("meta"):
        model = BiLM(config)
    state = {name: torch.empty(tensor.shape) for name, tensor in model.state_dict().items()}
    for entry in entries:
        array = np.empty(entry.shape, np.float32)
        file[entry.name].read_direct(array)
        for target, part in zip(entry.tensors(state), entry.to_ours(torch.from_numpy(array)), strict=True):
            target.copy_(part)
    model.load_state_dict(state, assign=True)
    return model.eval()


def write_weights(model: BiLM, path: Path) -> None:
    """Write the model's weights; `read_weights` gives them back bit for bit."""
    if model.config.forget_bias != 1.0:
        raise ModelFileError(
            f"{path}: this layout adds 1 to the forget gate when it is read, but the model's forget_bias is "
            f"{model.config.forget_bias}; save it in the native format instead"
        )
    state = model.state_dict()
    _reserve(path, sum(tensor.nbytes for tensor in state.values()))
    with h5py.File(path, "w") as file:
        for entry in _entries(model.config, _MANY_CELLS):
            ours = torch.stack(entry.tensors(state)).cpu().float()
            file.create_dataset(entry.name, data=entry.to_file(ours).contiguous().numpy())


def _reserve(path: Path, size: int) -> None:
    """Ask for the space beforehand: HDF5 ends the process when the disk runs full under it."""
    if hasattr(os, "posix_fallocate"):
        with path.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, size + _OVERHEAD)


def softmax_file(path: Path, shapes: dict[str, tuple[int, ...]], dim: int) -> SoftmaxFile:
    """The softmax that lies in this file, checked and not yet read."""
    shape = shapes["softmax/W"]
    if len(shape) != 2 or shape[1] != dim or shapes["softmax/b"] != shape[:1]:
        raise ModelFileError(
            f"{path}: softmax/W is {list(shape)} and softmax/b {list(shapes['softmax/b'])}, "
            f"expected [words, {dim}] and [words]; it belongs to another model: take it out of the folder"
        )
    return SoftmaxFile(shape[0], partial(_read_softmax, path))


def _read_softmax(path: Path) -> Softmax:
    with _open(path) as file:
        for name in ("softmax/W", "softmax/b"):
            _check_stored(path, file[name])
        return Softmax(*(torch.from_numpy(file[f"softmax/{n}"][...].astype(np.float32)) for n in ("W", "b")))


def write_softmax(softmax: Softmax, path: Path) -> None:
    """Write the softmax as the published `…_softmax_weights.hdf5` has it."""
    _reserve(path, softmax.weight.nbytes + softmax.bias.nbytes)
    with h5py.File(path, "w") as file:
        file.create_dataset("softmax/W", data=softmax.weight.cpu().float().numpy())
        file.create_dataset("softmax/b", data=softmax.bias.cpu().float().numpy())
