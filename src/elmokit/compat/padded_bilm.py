"""The biLM over padded batches, as AllenNLP and bilm-tf call it.

Shapes: B sentences, T positions of the longest, S tokens of all sentences, C characters of a token,
P projection, L layers.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elmokit.errors import ConfigError
from elmokit.model import (
    BiLM,
    CarriedState,
    encode_distinct_rows,
    first_positions,
    num_characters,
    pad_layers,
)
from elmokit.text import PAD, PREDICTION_SHIFT, character_matrix

Ids = npt.NDArray[np.int64]

_PADDING = PAD + PREDICTION_SHIFT  # fills up the characters of a token; a row of zeros is no token


def spell(tokens: Sequence[str], max_characters: int) -> Ids:
    """Return the character ids (n, C) of n tokens, shifted by one so that zero is free for padding."""
    spelt = character_matrix(list(tokens), max_characters=max_characters)
    return spelt.astype(np.int64) + PREDICTION_SHIFT


def stack_padded(
    rows: Sequence[npt.NDArray[Any]], inner: tuple[int, ...], dtype: npt.DTypeLike
) -> npt.NDArray[Any]:
    """Stack arrays (n_i, *inner) into one (B, longest, *inner), with zeros after the shorter ones."""
    batch = np.zeros((len(rows), max(map(len, rows), default=0), *inner), dtype)
    for target, row in zip(batch, rows, strict=True):
        target[: len(row)] = row
    return batch


def with_padding_row(model: BiLM) -> BiLM:
    """Return the model with a row of zeros before its characters, so that it reads what `spell` makes.

    Raises:
        ConfigError: the model does not read bytes.
    """
    encoder = model.config.encoder
    if encoder.reads != "bytes":
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
    """Return the vectors (S, P) of tokens given by their character ids (S, C)."""
    width = model.config.encoder.max_characters
    if ids.shape[-1] != width:
        raise ConfigError(
            f"the model reads {width} character ids a token, found {ids.shape[-1]}; "
            "make them for this model (AllenNLP's batch_to_ids always makes 50)"
        )
    return encode_distinct_rows(ids, lambda types: model.encoder(types, num_characters(types, _PADDING)))


def lengths_of(mask: Tensor) -> Tensor:
    """Return the number of tokens (B,) of each row of a mask (B, T).

    Raises:
        ConfigError: there is padding between tokens.
    """
    lengths = mask.sum(dim=1)
    if not torch.equal(mask, first_positions(lengths, mask.shape[1])):
        raise ConfigError(
            "padding (a row of zeros) stands before a token; put the tokens of each sentence first"
        )
    return lengths


def run(model: BiLM, vectors: Tensor, mask: Tensor, carried: CarriedState | None) -> Tensor:
    """Return all layers (L+1, B, T, 2P) of a padded batch, zero where there is no token.

    `vectors` (S, P) are those of the tokens under `mask` (B, T), row by row, with `<S>` and `</S>`. Each row
    starts in its `carried` state, which the call updates, or from zero.
    """
    rows = torch.arange(len(mask), device=mask.device)
    state = None if carried is None else carried.rows(model, rows)
    layers, ends = model(vectors, mask.sum(dim=1), state)  # (L+1, S, 2P)
    if carried is not None:
        carried.put(rows, ends)
    return pad_layers(layers, mask)
