"""Weights in bilm-tf's HDF5 layout, which AllenNLP, bilm-tf and simple_elmo read.

Nothing is read before every name, shape and stored size has been checked against the options, so a file with
false sizes cannot allocate memory.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from torch import Tensor

from elmokit.errors import ModelFileError
from elmokit.formats.bilm_layout import Names, entries, find_names, table_for
from elmokit.formats.bundle import SoftmaxFile
from elmokit.formats.inspect import describe_file
from elmokit.formats.layout import Entry, check_softmax, make_model
from elmokit.model import BiLM, Softmax

_MAX_DATASETS = 10_000
_OVERHEAD = 1024 * 1024  # more than names, groups and headers take
_MAX_COMPRESSION = 20  # trained weights hardly compress

_CELL = ("W_0", "B", "W_P_0")
_MANY_CELLS = Names("", "RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell", *_CELL)
_ONE_CELL = Names("", "RNN_{direction}/RNN/LSTMCell", *_CELL)  # bilm-tf's dumper, for a model with one layer
_CONVENTIONS = (_MANY_CELLS, _ONE_CELL)
# What h5py raises for a damaged file.
_DAMAGE = (OSError, RuntimeError, KeyError, TypeError, ValueError)


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    """Open a file for reading, and turn errors of HDF5 into a ModelFileError."""
    try:
        with h5py.File(path, "r") as file:
            yield file
    except _DAMAGE as error:
        raise ModelFileError(
            f"{path}: cannot be read as HDF5 weights: it is {describe_file(path)} ({error}); "
            "if it was downloaded or copied, do that again and compare the sizes"
        ) from error


def dataset_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every dataset; links to other files are not followed.

    Only the first ten thousand are listed: a file with more holds the results of a model.
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
    """Return whether these datasets are those of a biLM."""
    return find_names(_CONVENTIONS, shapes) is not None


def holds_softmax(shapes: dict[str, tuple[int, ...]]) -> bool:
    """Return whether these datasets include a softmax."""
    return "softmax/W" in shapes and "softmax/b" in shapes


def read_weights(path: Path, options: dict[str, Any]) -> BiLM:
    """Read a model with the sizes of the options.

    Raises:
        ModelFileError: the file is damaged, or does not fit the options.
        ConfigError: the options are not valid.
    """
    config, table = table_for(path, options, dataset_shapes(path), _CONVENTIONS)
    with _open(path) as file:
        for entry in table:
            _check_stored(path, file[entry.name])
        return make_model(config, table, lambda entry: _read(file, entry))


def _check_stored(path: Path, dataset: Any) -> None:  # noqa: ANN401 (h5py has no types)
    stored = dataset.id.get_storage_size()
    least = dataset.nbytes if dataset.chunks is None else dataset.nbytes // _MAX_COMPRESSION - 4096
    if dataset.dtype.kind != "f" or dataset.external or stored < least:
        raise ModelFileError(
            f"{path}: {dataset.name} declares {dataset.nbytes:,} bytes of {dataset.dtype}, the file stores "
            f"{stored:,}; it is damaged or not a weights file: get it again"
        )


def _read(file: Any, entry: Entry) -> Tensor:  # noqa: ANN401 (h5py has no types)
    array = np.empty(entry.shape, np.float32)
    file[entry.name].read_direct(array)
    return torch.from_numpy(array)


def write_weights(model: BiLM, path: Path) -> None:
    """Write the model's weights; `read_weights` returns them bit for bit."""
    if model.config.forget_bias != 1.0:
        raise ModelFileError(
            f"{path}: this layout adds 1 to the forget gate when it is read, but the model's forget_bias is "
            f"{model.config.forget_bias}; save it in the native format instead"
        )
    state = model.state_dict()
    _reserve(path, sum(tensor.nbytes for tensor in state.values()))
    with h5py.File(path, "w") as file:
        for entry in entries(model.config, _MANY_CELLS):
            content = entry.content(state).cpu().float()
            file.create_dataset(entry.name, data=content.contiguous().numpy())


def _reserve(path: Path, size: int) -> None:
    """Allocate the disk space first: HDF5 ends the process when a write fails."""
    if hasattr(os, "posix_fallocate"):
        with path.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, size + _OVERHEAD)


def softmax_file(path: Path, shapes: dict[str, tuple[int, ...]], dim: int) -> SoftmaxFile:
    """Return the softmax in this file, checked but not read."""
    words = check_softmax(path, shapes, "softmax/W", "softmax/b", dim)
    return SoftmaxFile(words, partial(_read_softmax, path))


def _read_softmax(path: Path) -> Softmax:
    with _open(path) as file:
        return Softmax(_read_float32(path, file["softmax/W"]), _read_float32(path, file["softmax/b"]))


def _read_float32(path: Path, dataset: Any) -> Tensor:  # noqa: ANN401 (h5py has no types)
    _check_stored(path, dataset)
    return torch.from_numpy(dataset[...].astype(np.float32))


def write_softmax(softmax: Softmax, path: Path) -> None:
    """Write the softmax in the layout of the published `…_softmax_weights.hdf5`."""
    _reserve(path, softmax.weight.nbytes + softmax.bias.nbytes)
    with h5py.File(path, "w") as file:
        file.create_dataset("softmax/W", data=softmax.weight.cpu().float().numpy())
        file.create_dataset("softmax/b", data=softmax.bias.cpu().float().numpy())


def read_dataset(path: Path, name: str, dim: int) -> Tensor:
    """Read a table of vectors of size `dim`, such as the token vectors that bilm-tf dumps.

    Raises:
        ModelFileError: the file has no such table.
    """
    shape = dataset_shapes(path).get(name)
    if shape is None or len(shape) != 2 or shape[1] != dim:
        found = "no such dataset" if shape is None else list(shape)
        raise ModelFileError(f"{path}: expected {name!r} of shape [words, {dim}], found {found}")
    with _open(path) as file:
        return _read_float32(path, file[name])
