"""Padded batches, as other libraries pass them, around a network that reads sentences without padding.

Shapes: B sentences, T positions of the longest, S tokens of all sentences, C characters of a token,
W ids of a token, P projection, L layers.
"""

import torch
from torch import Tensor


def first_positions(lengths: Tensor, width: int) -> Tensor:
    """Return a mask (B, width) that is true at the first positions of each row.

    Example:
        >>> first_positions(torch.tensor([2, 0]), 3).tolist()
        [[True, True, False], [False, False, False]]
    """
    return torch.arange(width, device=lengths.device) < lengths[:, None]


def num_characters(ids: Tensor, padding: int) -> Tensor:
    """Return how many characters each token (S, C) has before its padding, (S,)."""
    positions = torch.arange(1, ids.shape[1] + 1, device=ids.device)  # (C,)
    return ((ids != padding) * positions).amax(dim=1)


def with_boundaries(vectors: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Put the vectors of `<S>` and `</S>` around each sentence.

    Args:
        vectors: (2 + S, P), those of `<S>` and `</S>` and then those of all tokens.
        lengths: (B,) of the sentences.

    Returns:
        The vectors (S + 2B, P), and a mask (S + 2B,) that is true for tokens.
    """
    ends = (lengths + 2).cumsum(dim=0)  # (B,)
    is_token = torch.ones(len(vectors) - 2 + 2 * len(lengths), dtype=torch.bool, device=vectors.device)
    is_token[ends - lengths - 2] = False
    is_token[ends - 1] = False
    order = torch.zeros_like(is_token, dtype=torch.long)
    order[ends - 1] = 1
    order[is_token] = torch.arange(2, len(vectors), device=vectors.device)
    return vectors[order], is_token


def pad_layers(layers: Tensor, mask: Tensor) -> Tensor:
    """Return layers (L+1, S, 2P) at the places of a mask (B, T): (L+1, B, T, 2P), zero elsewhere."""
    padded = layers.new_zeros(len(layers), *mask.shape, layers.shape[-1])
    padded[:, mask] = layers
    return padded
