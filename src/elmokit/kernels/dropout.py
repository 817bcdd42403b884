"""Dropout whose masks are drawn four at a time on the CPU, where torch draws them one by one."""

import torch
from torch import Tensor, nn

_LEVELS = 1 << 16  # values of the 16 bits that decide of one number


def dropout(x: Tensor, rate: float, *, training: bool) -> Tensor:
    """Zero for a share `rate` of the numbers, drawn at random; the others are divided by what is left."""
    if not training or not 0 < rate < 1 or x.device.type != "cpu":
        return nn.functional.dropout(x, rate, training)
    draws = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(1 << 63), None)
    bits = draws.view(torch.int16)[: x.numel()].view(x.shape)
    kept = bits >= round(rate * _LEVELS) - _LEVELS // 2
    return x * kept.to(x.dtype).mul_(1 / (1 - rate))


class Dropout(nn.Dropout):
    """`torch.nn.Dropout`, faster."""

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape."""
        return dropout(x, self.p, training=self.training)
