"""Weights in bilm-tf's HDF5 layout, which AllenNLP, bilm-tf and simple_elmo read.

Nothing is read before every name, shape and stored size has been checked against the options, so a file with
false sizes cannot allocate memory.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from torch import Tensor

from elmokit.base import check_hdf5, open_hdf5, read_hdf5
from elmokit.errors import ModelFileError
from elmokit.formats.bilm_layout import Names, entries, find_names, table_for
from elmokit.formats.bundle import SoftmaxFile
from elmokit.formats.inspect import describe_file
from elmokit.formats.layout import check_softmax, make_model
from elmokit.model import BiLM, Softmax

_MAX_DATASETS = 10_000
_MAX_DEPTH = 10  # groups inside groups; a model has five

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
    with _open(path) as file:
        return dict(islice(_datasets(file, "", set()), _MAX_DATASETS))


def _datasets(group: Any, prefix: str, known: set[int]) -> Iterator[tuple[str, tuple[int, ...]]]:  # noqa: ANN401
    """Yield name and shape of the datasets in a group and the groups inside it.

    A group with several names is looked into once: with two names for each of thirty groups, one within the
    other, there would be 2³⁰ paths. Its other names are listed as if they were datasets, which fit no model.
    """
    if prefix.count("/") > _MAX_DEPTH:
        return
    known.add(h5py.h5o.get_info(group.id).addr)
    for name in group:
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            continue
        item = group[name]
        if isinstance(item, h5py.Dataset):
            yield prefix + name, tuple(item.shape or ())
        elif h5py.h5o.get_info(item.id).addr in known:
            yield prefix + name, ()
        elif isinstance(item, h5py.Group):
            yield from _datasets(item, f"{prefix}{name}/", known)


def holds_vectors(shapes: dict[str, tuple[int, ...]]) -> bool:
    """Return whether datasets are the vectors of sentences, as `embed` and AllenNLP write them."""
    return "sentence_to_index" in shapes or (bool(shapes) and all(name.isdecimal() for name in shapes))


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
        return make_model(config, table, lambda entry: _read(path, file[entry.name]), [path])


def _check_stored(path: Path, dataset: Any) -> None:  # noqa: ANN401 (h5py has no types)
    try:
        check_hdf5(dataset)
    except ValueError as error:
        raise ModelFileError(f"{path}: {error}; it is damaged or not a weights file: get it again") from error


def _read(path: Path, dataset: Any) -> Tensor:  # noqa: ANN401 (h5py has no types)
    _check_stored(path, dataset)
    return torch.from_numpy(read_hdf5(dataset).astype(np.float32))


def write_weights(model: BiLM, path: Path) -> None:
    """Write the model's weights; `read_weights` returns them bit for bit."""
    if model.config.forget_bias != 1.0:
        raise ModelFileError(
            f"{path}: this layout adds 1 to the forget gate when it is read, but the model's forget_bias is "
            f"{model.config.forget_bias}; save it in the native format instead"
        )
    state = model.state_dict()
    with open_hdf5(path) as add:
        for entry in entries(model.config, _MANY_CELLS):
            add(entry.name, entry.content(state).cpu().float().contiguous().numpy())


def softmax_file(path: Path, shapes: dict[str, tuple[int, ...]], dim: int) -> SoftmaxFile:
    """Return the softmax in this file, checked but not read."""
    words = check_softmax(path, shapes, "softmax/W", "softmax/b", dim)
    return SoftmaxFile.later(words, path, partial(_read_softmax, path))


def _read_softmax(path: Path) -> Softmax:
    with _open(path) as file:
        return Softmax(_read(path, file["softmax/W"]), _read(path, file["softmax/b"]))


def write_softmax(softmax: Softmax, path: Path) -> None:
    """Write the softmax in the layout of the published `…_softmax_weights.hdf5`."""
    with open_hdf5(path) as add:
        add("softmax/W", softmax.weight.cpu().float().numpy())
        add("softmax/b", softmax.bias.cpu().float().numpy())


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
        return _read(path, file[name])
