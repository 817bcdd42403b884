"""A trained biLM made wider, or given another vocabulary, without forgetting anything.

The new model has room for more of everything: cells, outputs, filters, words. Its first places hold the old
weights. A place that was there before reads nothing from the new ones (weight 0), so it computes what it did;
a new place reads everything, by weights drawn at random. The softmax has zeros for the new outputs. So all
probabilities stay as they were at first, and the zeros are what training fills:

    new W = ⎡ old W     0    ⎤  old outputs
            ⎣ random  random ⎦  new outputs

Shapes: V words, P projection, N cell, F filters; a leading 2 is the direction.
"""

from dataclasses import replace
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from elmokit.errors import ConfigError
from elmokit.model import (
    BiLM,
    BiLMConfig,
    CharCNN,
    CharCNNConfig,
    Highway,
    LexiconConfig,
    Softmax,
    WordConfig,
)
from elmokit.pretraining.bilm.softmax_training import SoftmaxTable
from elmokit.text import Vocabulary


@torch.no_grad()
def grow_model(old: BiLM, new: BiLM, kept: Tensor) -> None:
    """Give a wider model, drawn at random, the weights of a trained one.

    Args:
        old: The trained model.
        new: The wider one; changed in place.
        kept: (n, 2) new and old row of each word that both vocabularies have, for a table of word vectors.

    Raises:
        ConfigError: The new model is not the old one made wider.
    """
    _check_wider(old.config, new.config)
    cells, outputs = torch.arange(old.config.cell_dim), torch.arange(old.config.projection_dim)
    gates = torch.cat([cells + gate * new.config.cell_dim for gate in range(4)])
    if isinstance(old.encoder, CharCNN):
        _grow_encoder(old.encoder, cast(CharCNN, new.encoder), outputs)
    else:
        table = cast(Tensor, new.encoder.weight)
        table[kept[:, :1], outputs] = cast(Tensor, old.encoder.weight)[kept[:, 1]]
    for before, after in zip(old.lstm_layers, new.lstm_layers, strict=True):
        for direction in range(2):
            small, large = before.weights(direction), after.weights(direction)
            _widen(large.input_weight, small.input_weight, gates, outputs)
            _widen(large.state_weight, small.state_weight, gates, outputs)
            _widen(large.bias, small.bias, gates)
            if small.projection is not None and large.projection is not None:
                _widen(large.projection, small.projection, outputs, cells)


@torch.no_grad()
def grow_softmax(old: Softmax, new: SoftmaxTable, kept: Tensor) -> None:
    """Give a new softmax the rows of a trained one for the words that both know.

    The other words start as the average of the known ones of the rarer half of the vocabulary, with the bias
    that is usual there for their frequency.

    Args:
        old: The trained softmax.
        new: The new one, its biases at the log frequencies; changed in place.
        kept: (n, 2) new and old row of each word that both have.

    Raises:
        ConfigError: One of them is an adaptive softmax.
    """
    if old.cutoffs or new.cutoffs:
        raise ConfigError('an adaptive softmax cannot grow; use softmax = "sampled" or "full"')
    rows, theirs = kept.T
    outputs = torch.arange(old.weight.shape[1])
    rare = kept[rows >= new.num_words // 2]
    rare = rare if len(rare) else kept
    usual = (old.bias[rare[:, 1]] - new.bias[rare[:, 0]]).mean()
    new.bias.add_(usual)
    new.bias[rows] = old.bias[theirs]
    new.weight.zero_()
    new.weight[:, outputs] = old.weight[rare[:, 1]].mean(0)
    new.weight[rows[:, None], outputs] = old.weight[theirs]


def words_of_both(new: Vocabulary, old: Vocabulary) -> Tensor:
    """Return (n, 2): the new and the old row of each word that both vocabularies have."""
    ids = {token: row for row, token in enumerate(old.tokens)}
    pairs = [(row, ids[token]) for row, token in enumerate(new.tokens) if token in ids]
    return torch.from_numpy(np.array(pairs, np.int64).reshape(-1, 2))


def _check_wider(old: BiLMConfig, new: BiLMConfig) -> None:
    encoder: CharCNNConfig | LexiconConfig | WordConfig = old.encoder
    sizes = {"cell_dim": old.cell_dim, "projection_dim": old.projection_dim}
    smaller = [
        f"{name} {getattr(new, name)} (was {size})"
        for name, size in sizes.items()
        if getattr(new, name) < size
    ]
    if isinstance(old.encoder, CharCNNConfig) and isinstance(new.encoder, CharCNNConfig):
        room = dict(new.encoder.filters)
        smaller += [
            f"{room.get(width, 0)} filters of width {width} (were {number})"
            for width, number in old.encoder.filters
            if room.get(width, 0) < number
        ]
        encoder = replace(old.encoder, filters=new.encoder.filters)
    elif type(old.encoder) is type(new.encoder):  # tables, whose rows are those of the vocabularies
        encoder = new.encoder
    if smaller:
        raise ConfigError(f"a model can only grow; the recipe has {', '.join(smaller)}")
    expected = replace(old, encoder=encoder, cell_dim=new.cell_dim, projection_dim=new.projection_dim)
    if new != expected or old.joined_directions:
        raise ConfigError(
            "a model can grow in its cell, its projection and its character filters; in everything else the "
            f"recipe must have the same shape: {expected}, found {new}"
        )


def _grow_encoder(old: CharCNN, new: CharCNN, outputs: Tensor) -> None:
    """Give a character CNN with more filters the weights of one with fewer; filters go by their width."""
    new.embedding.weight.copy_(old.embedding.weight)
    widths = [width for width, _ in new.config.filters]
    firsts = np.cumsum([0, *(number for _, number in new.config.filters)])
    places = []
    for (width, number), convolution in zip(old.config.filters, old.convolutions, strict=True):
        where = widths.index(width)
        for large, small in zip(new.convolutions[where].parameters(), convolution.parameters(), strict=True):
            large[:number] = small
        places.append(torch.arange(number) + int(firsts[where]))
    filters = torch.cat(places)
    for before, after in zip(old.highways, new.highways, strict=True):
        narrow, wide = cast(Highway, before), cast(Highway, after)
        _widen_linear(wide.gate, narrow.gate, filters, filters)
        _widen_linear(wide.transform, narrow.transform, filters, filters)
    if old.projection is not None and new.projection is not None:
        _widen_linear(new.projection, old.projection, outputs, filters)


def _widen_linear(new: nn.Linear, old: nn.Linear, outputs: Tensor, inputs: Tensor) -> None:
    _widen(new.weight, old.weight, outputs, inputs)
    _widen(new.bias, old.bias, outputs)


def _widen(new: Tensor, old: Tensor, outputs: Tensor, inputs: Tensor | None = None) -> None:
    """Put old weights (outputs, inputs), or biases, in their places; old outputs read nothing else."""
    if inputs is None:
        new[outputs] = old
    else:
        new[outputs] = 0
        new[outputs[:, None], inputs] = old
