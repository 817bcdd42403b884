"""Dropout that draws four masks from one random number on the CPU, where torch draws each by itself."""

import torch
from torch import Tensor, nn

_LEVELS = 1 << 16  # values of the 16 random bits that are compared with the rate


def dropout(x: Tensor, rate: float, *, training: bool, generator: torch.Generator | None = None) -> Tensor:
    """Set a share `rate` of the numbers to zero and divide the others by 1 - rate.

    Args:
        x: Of any shape.
        rate: From 0 to 1.
        training: Whether to drop anything at all.
        generator: What the mask is drawn from; torch's global generator if not given.
    """
    on_cpu = x.device.type == "cpu"
    if not training or not 0 < rate < 1 or (generator is None and not on_cpu):
        return nn.functional.dropout(x, rate, training)
    device = x.device if generator is None else generator.device
    draws = torch.empty(-(-x.numel() // 4), dtype=torch.int64, device=device)
    draws.random_(-(1 << 63), None, generator=generator)
    bits = draws.view(torch.int16)[: x.numel()].view(x.shape)
    kept = bits >= round(rate * _LEVELS) - _LEVELS // 2
    return x * kept.to(x).mul_(1 / (1 - rate))


class Dropout(nn.Dropout):
    """A faster `torch.nn.Dropout` that can draw its masks from a generator of your own.

    Args:
        p: The share of numbers that are set to zero in training.
        generator: What masks are drawn from; torch's global generator if None. It may be set later.
    """

    def __init__(self, p: float = 0.5, *, generator: torch.Generator | None = None) -> None:
        super().__init__(p)
        self.generator = generator

    def forward(self, x: Tensor) -> Tensor:
        """Drop numbers of a tensor of any shape."""
        return dropout(x, self.p, training=self.training, generator=self.generator)
