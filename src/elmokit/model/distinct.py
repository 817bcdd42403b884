"""Distinct, encode, gather: each distinct token of a batch is encoded once."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def encode_distinct(tokens: Sequence[str], encode: Callable[[list[str]], Tensor]) -> Tensor:
    """Return the vectors of tokens (S, P); `encode` makes those (U, P) of the distinct ones.

    Example:
        >>> encode_distinct(["a", "b", "a"], lambda types: torch.arange(float(len(types)))[:, None]).tolist()
        [[0.0], [1.0], [0.0]]
    """
    rows: dict[str, int] = {}
    places = [rows.setdefault(token, len(rows)) for token in tokens]
    vectors = encode(list(rows))  # (U, P)
    return vectors[torch.tensor(places, dtype=torch.long, device=vectors.device)]


def encode_distinct_rows(ids: Tensor, encode: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the vectors (S, P) of tokens given by rows of ids (S, W), likewise."""
    types, places = torch.unique(ids, dim=0, return_inverse=True)  # (U, W), (S,)
    return encode(types)[places]
