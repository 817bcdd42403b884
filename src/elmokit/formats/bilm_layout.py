"""The tensors of bilm-tf's models as a table, for its HDF5 files (AllenNLP's format) and its checkpoints."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from elmokit.errors import ModelFileError
from elmokit.formats.layout import PLAIN, Entry, Shapes, check_shapes
from elmokit.formats.options import config_from_options
from elmokit.model import BiLMConfig

_OUR_GATES = (0, 2, 1, 3)  # TensorFlow stores i, j, f, o; we keep i, f, j, o: swapping is its own inverse.


class Names(NamedTuple):
    """Names that a kind of file uses: a prefix of all, the path of an LSTM cell, and the cell's tensors.

    `cell` has places for direction and layer, or for the direction alone if the model has one layer.
    """

    prefix: str
    cell: str
    kernel: str
    bias: str
    projection: str

    def of_cell(self, direction: int, layer: int) -> str:
        """Return the path of a cell."""
        return self.prefix + self.cell.format(direction=direction, layer=layer)

    @property
    def first_kernel(self) -> str:
        """Return the name of the tensor by which files of this convention are recognised."""
        return f"{self.of_cell(0, 0)}/{self.kernel}"


def find_names(conventions: tuple[Names, ...], shapes: Shapes) -> Names | None:
    """Return the convention that these tensors follow; None if they are not a model's."""
    return next((names for names in conventions if names.first_kernel in shapes), None)


def table_for(
    path: Path, options: dict[str, Any], shapes: Shapes, conventions: tuple[Names, ...]
) -> tuple[BiLMConfig, list[Entry]]:
    """Return the sizes of the model in a file and the tensors to read, after checking names and shapes.

    Args:
        path: the file, for messages.
        options: the parsed options file.
        shapes: the file's tensors.
        conventions: the names it may use.

    Raises:
        ModelFileError: the file holds no biLM, or does not fit the options.
        ConfigError: the options are not valid.
    """
    names = find_names(conventions, shapes)
    if names is None:
        found = ", ".join(sorted(shapes)[:5]) or "nothing"
        raise ModelFileError(
            f"{path}: holds no biLM of both directions: expected {conventions[0].first_kernel!r}, "
            f"found {found}; pass the weights file (often *_weights.hdf5 or model.hdf5)"
        )
    prefix = names.prefix
    embedding = shapes.get(prefix + "embedding")
    config = config_from_options(
        options,
        char_projection=prefix + "CNN_proj/W_proj" in shapes,
        lstm_projection=f"{names.of_cell(0, 0)}/{names.projection}" in shapes,
        num_words=embedding[0] if embedding else None,
    )
    table = list(entries(config, names))
    ours = (prefix + "RNN_", prefix + "CNN", prefix + "char_embed")  # a file may also hold a softmax, …
    expected = {entry.name: entry.shape for entry in table}
    there = {name: shape for name, shape in shapes.items() if name in expected or name.startswith(ours)}
    hint = "pass the options file that came with these weights"
    check_shapes(expected, there, f"{path}: weights and options", hint)
    return config, table


def entries(config: BiLMConfig, names: Names) -> Iterator[Entry]:
    """Yield every tensor of a model with these sizes."""
    yield from _encoder_entries(config, names.prefix)
    cell, dim = config.cell_dim, config.projection_dim
    for layer in range(config.num_layers):
        key = f"layers.{layer}."
        kernels = (key + "input_weight", key + "state_weight")
        for direction in range(2):
            path = names.of_cell(direction, layer)
            yield Entry(f"{path}/{names.kernel}", (2 * dim, 4 * cell), kernels, *_KERNEL, direction)
            yield Entry(f"{path}/{names.bias}", (4 * cell,), (key + "bias",), *_BIAS, direction)
            if config.projection:
                projection = (key + "projection",)
                yield Entry(f"{path}/{names.projection}", (cell, dim), projection, *_MATRIX, direction)


def _encoder_entries(config: BiLMConfig, prefix: str) -> Iterator[Entry]:
    encoder, dim = config.encoder, config.projection_dim
    if encoder.reads == "words":
        yield Entry(prefix + "embedding", (encoder.num_words, dim), ("encoder.weight",), *PLAIN)
        return
    assert encoder.reads == "bytes"  # an options file knows only words and bytes
    size, filters = encoder.embedding_dim, encoder.num_filters
    characters = (encoder.num_characters, size)
    yield Entry(prefix + "char_embed", characters, ("encoder.embedding.weight",), *PLAIN)
    for i, (width, number) in enumerate(encoder.filters):
        key = f"encoder.convolutions.{i}."
        yield Entry(f"{prefix}CNN/W_cnn_{i}", (1, width, size, number), (key + "weight",), *_CONVOLUTION)
        yield Entry(f"{prefix}CNN/b_cnn_{i}", (number,), (key + "bias",), *PLAIN)
    for i in range(encoder.num_highway):
        for theirs, ours in (("carry", "gate"), ("transform", "transform")):
            key, path = f"encoder.highways.{i}.{ours}.", f"{prefix}CNN_high_{i}/"
            yield Entry(f"{path}W_{theirs}", (filters, filters), (key + "weight",), *_MATRIX)
            yield Entry(f"{path}b_{theirs}", (filters,), (key + "bias",), *PLAIN)
    if encoder.projection:
        yield Entry(f"{prefix}CNN_proj/W_proj", (filters, dim), ("encoder.projection.weight",), *_MATRIX)
        yield Entry(f"{prefix}CNN_proj/b_proj", (dim,), ("encoder.projection.bias",), *PLAIN)


def _matrix_to_ours(x: Tensor) -> Tensor:
    return x.T[None]  # (in, out) → (1, out, in)


def _matrix_to_file(x: Tensor) -> Tensor:
    return x[0].T


def _conv_to_ours(x: Tensor) -> Tensor:
    return x.permute(0, 3, 2, 1)  # (1, width, E, number) → (1, number, E, width): its own inverse


def _swap_gates(x: Tensor) -> Tensor:
    """Swap (…, 4N) i, j, f, o ↔ i, f, j, o."""
    return x.view(*x.shape[:-1], 4, -1)[..., _OUR_GATES, :].flatten(-2)


def _bias_to_ours(x: Tensor) -> Tensor:
    return _swap_gates(x)[None]


def _bias_to_file(x: Tensor) -> Tensor:
    return _swap_gates(x[0])


def _kernel_to_ours(x: Tensor) -> Tensor:
    """Split (2P, 4N), first the rows of the input, then of the state, into (2, 4N, P)."""
    return _swap_gates(x).view(2, -1, x.shape[1]).transpose(1, 2)


def _kernel_to_file(x: Tensor) -> Tensor:
    return _swap_gates(x.transpose(1, 2).flatten(0, 1))


# Conversions of a tensor from the file to the model, and back.
_MATRIX = (_matrix_to_ours, _matrix_to_file)
_CONVOLUTION = (_conv_to_ours, _conv_to_ours)
_BIAS = (_bias_to_ours, _bias_to_file)
_KERNEL = (_kernel_to_ours, _kernel_to_file)
