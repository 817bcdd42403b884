"""Training batches: examples of similar length together, in another order every epoch."""

from collections.abc import Sequence
from typing import TypeVar

import torch

Item = TypeVar("Item")

_NOISE = 0.1  # share of a length, so that batches differ from epoch to epoch


def shuffled_batches(
    items: Sequence[Item], lengths: Sequence[int], size: int, generator: torch.Generator
) -> list[list[Item]]:
    """Return all items in batches of `size` (one may be smaller), sorted by length with some noise."""
    noise = 1 + _NOISE * (2 * torch.rand(len(items), generator=generator) - 1)
    order = torch.argsort(torch.tensor(lengths) * noise, stable=True).tolist()
    batches = [order[start : start + size] for start in range(0, len(order), size)]
    places = torch.randperm(len(batches), generator=generator).tolist()
    return [[items[row] for row in batches[place]] for place in places]
