"""Random numbers of torch's global generator, for code that cannot be given a generator of its own."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def seeded(seed: int, *more: int) -> Iterator[None]:
    """Seed torch's global generator inside this block and restore it afterwards.

    Modules draw their initial weights from the global generator, and so do modules of other libraries.

    Args:
        seed: A number that is not negative.
        more: Further numbers, such as an epoch; all of them together decide what is drawn.

    Example:
        >>> with seeded(1, 7):
        ...     first = torch.rand(2)
        >>> with seeded(1, 7):
        ...     bool((torch.rand(2) == first).all())
        True
    """
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(combined_seed(seed, *more))
        yield


def combined_seed(seed: int, *more: int) -> int:
    """Return one seed for several numbers, such as a run's seed and a step; one number stays as it is."""
    if not more:
        return seed
    return int(np.random.SeedSequence(seed, spawn_key=more).generate_state(1, np.uint64)[0]) >> 1
