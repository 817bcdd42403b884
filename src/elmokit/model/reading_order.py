"""Sentences in the order in which each direction reads them, for layers that read all tokens at once.

Shapes: B sentences, S tokens of all of them.
"""

import torch
from torch import Tensor


def positions_of(lengths: Tensor) -> Tensor:
    """Return how many tokens of its sentence were read before each token, (S,).

    Example:
        >>> positions_of(torch.tensor([2, 3])).tolist()
        [0, 1, 0, 1, 2]
    """
    lengths = lengths.cpu()
    ends = lengths.cumsum(0)
    return torch.arange(int(lengths.sum())) - torch.repeat_interleave(ends - lengths, lengths)


def reversed_within(lengths: Tensor) -> Tensor:
    """Return the order that reverses each sentence, which is its own inverse, (S,).

    Example:
        >>> reversed_within(torch.tensor([2, 3])).tolist()
        [1, 0, 4, 3, 2]
    """
    lengths = lengths.cpu()
    last = torch.repeat_interleave(lengths.cumsum(0) - 1, lengths)
    return last - positions_of(lengths)
