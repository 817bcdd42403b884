"""The tensors of AllenNLP's ELMo as a table; ELMoForManyLangs has the same parts under other names."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from elmokit.formats.layout import PLAIN, Entry
from elmokit.kernels import add_to_forget_gate
from elmokit.model import BiLMConfig, CharCNNConfig


def allennlp_entries(config: BiLMConfig) -> Iterator[Entry]:
    """Yield every tensor in the state dict of AllenNLP's `_ElmoBiLm`.

    Its table of characters has one row more than bilm-tf's, for padding; so must the model's.
    """
    encoder = config.encoder
    assert encoder.reads == "bytes"
    where = "_token_embedder."
    characters = (encoder.num_characters, encoder.embedding_dim)
    yield Entry(where + "_char_embedding_weights", characters, ("encoder.embedding.weight",), *PLAIN)
    yield from convolution_entries(encoder, where + "char_conv_{}.")
    yield from highway_entries(encoder, where + "_highways._layers.{}.")
    if encoder.projection:
        yield from projection_entries(config, where + "_projection.", encoder.num_filters)
    yield from lstm_entries(config, "_elmo_lstm.")


def convolution_entries(encoder: CharCNNConfig, path: str, ours: str = "encoder") -> Iterator[Entry]:
    """Yield the convolutions; `path` has a place for their number, `ours` is their prefix in the model."""
    for i, (width, number) in enumerate(encoder.filters):
        theirs, key = path.format(i), f"{ours}.convolutions.{i}."
        shape = (number, encoder.embedding_dim, width)
        yield Entry(theirs + "weight", shape, (key + "weight",), *PLAIN)
        yield Entry(theirs + "bias", (number,), (key + "bias",), *PLAIN)


def highway_entries(encoder: CharCNNConfig, path: str, ours: str = "encoder") -> Iterator[Entry]:
    """Yield the highways; the arguments are those of `convolution_entries`."""
    filters = encoder.num_filters
    for i in range(encoder.num_highway):
        for name, shape in (("weight", (2 * filters, filters)), ("bias", (2 * filters,))):
            keys = (f"{ours}.highways.{i}.transform.{name}", f"{ours}.highways.{i}.gate.{name}")
            yield Entry(path.format(i) + name, shape, keys, _highway_to_ours, _highway_to_file)


def projection_entries(config: BiLMConfig, path: str, input_dim: int) -> Iterator[Entry]:
    """Yield the linear layer at the end of the encoder."""
    shape = (config.projection_dim, input_dim)
    yield Entry(path + "weight", shape, ("encoder.projection.weight",), *PLAIN)
    yield Entry(path + "bias", shape[:1], ("encoder.projection.bias",), *PLAIN)


def lstm_entries(config: BiLMConfig, prefix: str) -> Iterator[Entry]:
    """Yield the LSTMs; their bias includes what the model adds to the forget gate."""
    cell, dim = config.cell_dim, config.projection_dim
    bias = (partial(_bias_to_ours, config.forget_bias), partial(_bias_to_file, config.forget_bias))
    for layer in range(config.num_layers):
        ours = f"layers.{layer}."
        for direction, name in enumerate(("forward", "backward")):
            path = f"{prefix}{name}_layer_{layer}."
            for half in ("input", "state"):
                key = f"{ours}{half}_weight"
                yield Entry(f"{path}{half}_linearity.weight", (4 * cell, dim), (key,), *PLAIN, direction)
            yield Entry(path + "state_linearity.bias", (4 * cell,), (ours + "bias",), *bias, direction)
            if config.projection:
                key = ours + "projection"
                yield Entry(path + "state_projection.weight", (dim, cell), (key,), *PLAIN, direction)


def _bias_to_ours(forget_bias: float, x: Tensor) -> Tensor:
    return add_to_forget_gate(x, -forget_bias)[None]


def _bias_to_file(forget_bias: float, x: Tensor) -> Tensor:
    return add_to_forget_gate(x[0], forget_bias)


def _highway_to_ours(x: Tensor) -> Tensor:
    """Convert (2F, …), transform and the gate that keeps x, to (2, F, …), transform and its complement.

    1 - σ(z) = σ(-z).
    """
    transform, keep = x.chunk(2)
    return torch.stack([transform, -keep])


def _highway_to_file(x: Tensor) -> Tensor:
    return torch.cat([x[0], -x[1]])
