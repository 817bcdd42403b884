"""Sample a token from log-probabilities. Shapes: V vocabulary, k tokens of the nucleus."""

import torch
from torch import Tensor

from elmokit.base import check_number


def sample(
    log_probabilities: Tensor, *, generator: torch.Generator, temperature: float = 1.0, top_p: float = 1.0
) -> int:
    """Sample one id from p(i)^(1/temperature), renormalised and restricted to its nucleus.

    `log_probabilities` (V,) and the generator are on the CPU. A `temperature` below 1 sharpens the
    distribution, 0 returns the most likely id; the nucleus is what `nucleus` returns for `top_p`.

    Raises:
        ConfigError: `temperature` or `top_p` is out of range.
    """
    check_number("temperature", temperature, least=0)
    check_number("top_p", top_p, above=0, most=1)
    if temperature == 0:
        return int(log_probabilities.argmax())
    probabilities = (log_probabilities.double() / temperature).softmax(dim=0)  # (V,)
    likely, ids = nucleus(probabilities, top_p)
    return int(ids[torch.multinomial(likely, 1, generator=generator)])


def nucleus(probabilities: Tensor, top_p: float) -> tuple[Tensor, Tensor]:
    """Find the fewest ids whose `probabilities` (V,) sum to `top_p` or more (Holtzman et al. 2020).

    Returns:
        Their probabilities (k,) and the ids (k,), the most likely first.

    Example:
        >>> nucleus(torch.tensor([0.125, 0.5, 0.25, 0.125]), 0.7)
        (tensor([0.5000, 0.2500]), tensor([1, 2]))
    """
    ordered, ids = probabilities.sort(descending=True)  # (V,) each
    kept = ordered.cumsum(dim=0) - ordered < top_p  # what the more likely ids sum to
    return ordered[kept], ids[kept]


def new_generator() -> torch.Generator:
    """Return a generator of random numbers that differ each time."""
    generator = torch.Generator()
    generator.seed()
    return generator
