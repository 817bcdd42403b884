"""Packed batches: sentences of different lengths side by side, without work on padding."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Packing:
    """How sentences that lie one after another are laid out step by step, longest sentence first.

    Step t holds the t-th token of every sentence that has one, so that no step works on padding. Backward,
    each sentence is read from its own last token, which gives the same step sizes.

    Attributes:
        order: (B,) the sentences by falling length.
        step_sizes: For each step the number of sentences that are still running.
        index: (2, S) which token stands at a packed place, forward and backward.
    """

    order: Tensor
    step_sizes: list[int]
    index: Tensor

    @classmethod
    def of(cls, lengths: Tensor) -> "Packing":
        """Lay out sentences of these lengths.

        Example:
            >>> packing = Packing.of(torch.tensor([1, 3]))
            >>> packing.step_sizes, packing.index.tolist()
            ([2, 1, 1], [[1, 0, 2, 3], [3, 0, 2, 1]])
        """
        each = lengths.cpu().numpy()  # small operations of NumPy take less time than torch's
        order = np.argsort(-each, kind="stable")  # (B,)
        counts = np.bincount(each, minlength=1)  # (longest + 1,) sentences of each length
        sizes = len(each) - counts.cumsum()[:-1]  # (longest,)
        step = np.repeat(np.arange(len(sizes)), sizes)  # (S,)
        row = order[np.arange(len(step)) - (sizes.cumsum() - sizes)[step]]  # (S,)
        ends = each.cumsum()  # (B,)
        index = np.stack([(ends - each)[row] + step, ends[row] - 1 - step])  # (2, S)
        return cls(torch.from_numpy(order), sizes.tolist(), torch.from_numpy(index))

    @cached_property
    def inverse(self) -> Tensor:
        """Return at which packed place a token stands, (2, S)."""
        return torch.argsort(self.index, dim=1)


def step_blocks(step_sizes: list[int], most: int) -> Iterator[tuple[list[int], int, int]]:
    """Group the steps into blocks of at most `most` rows, or of one step that has more.

    Yields:
        The sizes of a block's steps, and its first and last row (exclusive).

    Example:
        >>> list(step_blocks([3, 2, 2], most=5))
        [([3, 2], 0, 5), ([2], 5, 7)]
    """
    sizes: list[int] = []
    begin = 0
    for size in step_sizes:
        if sizes and sum(sizes) + size > most:
            yield sizes, begin, begin + sum(sizes)
            sizes, begin = [], begin + sum(sizes)
        sizes.append(size)
    if sizes:
        yield sizes, begin, begin + sum(sizes)
