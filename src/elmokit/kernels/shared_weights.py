"""One copy of a model's weights for all processes of a machine."""

from collections.abc import Iterable

import torch
from torch import Tensor

from elmokit.base import share_pages, shared_copy
from elmokit.kernels.native import weight_blocks

_LEAST_BYTES = 1 << 16  # smaller blocks are not worth a file


@torch.no_grad()
def share_weights(parameters: Iterable[Tensor]) -> None:
    """Replace the memory of parameters, and of all weights packed so far, by pages that processes share.

    Args:
        parameters: Of models on the CPU; those on other devices stay as they are.
    """
    for parameter in parameters:
        if parameter.is_cpu and parameter.nbytes >= _LEAST_BYTES:
            data = parameter.data.contiguous()
            copy = shared_copy(data.reshape(-1).view(torch.uint8).numpy())
            if copy is not None:
                parameter.data = torch.frombuffer(copy, dtype=data.dtype).view(data.shape)
    share_pages([block for block in weight_blocks() if block[1] >= _LEAST_BYTES])
