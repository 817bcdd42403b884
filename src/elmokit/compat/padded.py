"""Padded batches, as the old systems have them, over a model that knows no padding.

Shapes: B sentences, T positions of the longest, S tokens of all, C characters of a token, P projection.
"""

from dataclasses import replace

import torch
from torch import Tensor

from elmokit.errors import ConfigError
from elmokit.model import BiLM, CarriedState, CharCNNConfig
from elmokit.text import PAD, PREDICTION_SHIFT

_PADDING = PAD + PREDICTION_SHIFT  # the character that fills up a token; a position without a token is zeros


def with_padding_row(model: BiLM) -> BiLM:
    """The same model with a row of zeros before its characters, so that it reads ids of prediction.

    Raises:
        ConfigError: it does not read bytes.
    """
    encoder = model.config.encoder
    if not isinstance(encoder, CharCNNConfig):
        raise ConfigError("this model reads whole words, not characters; use elmokit.load for it")
    rows = encoder.num_characters + PREDICTION_SHIFT
    with torch.device("meta"):
        grown = BiLM(replace(model.config, encoder=replace(encoder, num_characters=rows)))
    state = model.state_dict()
    table = state["encoder.embedding.weight"]
    state["encoder.embedding.weight"] = torch.cat([torch.zeros_like(table[:1]), table])
    grown.load_state_dict(state, assign=True)
    return grown.eval()


def encode(model: BiLM, ids: Tensor) -> Tensor:
    """The vectors (S, P) of tokens given by ids of prediction (S, C), each distinct token computed once."""
    encoder = model.config.encoder
    assert isinstance(encoder, CharCNNConfig)
    if ids.shape[-1] != encoder.max_characters:
        raise ConfigError(
            f"the model reads {encoder.max_characters} character ids a token, found {ids.shape[-1]}; "
            "make them for this model (AllenNLP's batch_to_ids always makes 50)"
        )
    types, places = torch.unique(ids, dim=0, return_inverse=True)  # (U, C), (S,)
    positions = torch.arange(1, ids.shape[-1] + 1, device=ids.device)
    used = ((types != _PADDING) * positions).amax(dim=1)  # (U,) up to the last id that is not padding
    vectors: Tensor = model.encoder(types, used)  # (U, P)
    return vectors[places]


def lengths_of(mask: Tensor) -> Tensor:
    """The number of tokens (B,) of each row of a mask (B, T).

    Raises:
        ConfigError: padding stands between tokens.
    """
    lengths = mask.sum(dim=1)
    if not torch.equal(mask, up_to(lengths, mask.shape[1])):
        raise ConfigError(
            "padding (a row of zeros) stands before a token; put the tokens of each sentence first"
        )
    return lengths


def up_to(lengths: Tensor, width: int) -> Tensor:
    """A mask (B, width) of the first positions of each row."""
    return torch.arange(width, device=lengths.device) < lengths[:, None]


def run(model: BiLM, vectors: Tensor, mask: Tensor, carried: CarriedState | None) -> Tensor:
    """All layers of a padded batch.

    Args:
        model: the network.
        vectors: (S, P) of the tokens under `mask`, row by row, `<S>` and `</S>` among them.
        mask: (B, T) where there are tokens: the first positions of each row.
        carried: where row k goes on from, and will next time; None for zero.

    Returns:
        (L+1, B, T, 2P), zero where there is no token.
    """
    rows = torch.arange(len(mask), device=mask.device)
    state = None if carried is None else carried.rows(model, rows)
    layers, ends = model(vectors, mask.sum(dim=1), state)  # (L+1, S, 2P)
    if carried is not None:
        carried.put(rows, ends)
    padded: Tensor = layers.new_zeros(len(layers), *mask.shape, layers.shape[-1])
    padded[:, mask] = layers
    return padded
