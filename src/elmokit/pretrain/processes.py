"""Training by several processes (torchrun): each has some of the rows, and gradients are summed.

torch's DistributedDataParallel hooks into autograd's own accumulation, which this training does not use (see
`network.py`), and would sum the whole table of the softmax at every step. Here the network's gradients are
summed as one flat tensor, and of the table only the rows that have one.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

from elmokit.errors import ConfigError
from elmokit.model import LayerState
from elmokit.pretrain.softmax import RowGradient, coalesce

_PATIENCE = timedelta(days=1)  # the others wait while one prepares the text, or evaluates


@dataclass(frozen=True)
class Processes:
    """This process among all that train together."""

    rank: int = 0
    count: int = 1

    @classmethod
    def join(cls, device: torch.device) -> "Processes":
        """Join the others, where torchrun has started several."""
        count = int(os.environ.get("WORLD_SIZE", "1"))
        if count == 1:
            return cls()
        if not dist.is_initialized():
            if device.type == "cuda":
                torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
            # Numbers to agree on lie on the CPU, gradients on the device.
            dist.init_process_group(
                "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo", timeout=_PATIENCE
            )
        return cls(dist.get_rank(), count)

    @property
    def leads(self) -> bool:
        """Whether this process writes files and speaks."""
        return self.rank == 0

    def rows(self, batch: int) -> slice:
        """Which rows of a batch are this process's."""
        if batch % self.count:
            raise ConfigError(
                f"a batch of {batch} rows cannot be divided among {self.count} processes; choose a multiple"
            )
        each = batch // self.count
        return slice(self.rank * each, (self.rank + 1) * each)

    def sum_gradients(self, parameters: Sequence[Tensor], table: RowGradient) -> RowGradient:
        """Sum the gradients over all processes: those of the parameters in place."""
        if self.count == 1:
            return table
        grads = [parameter.grad for parameter in parameters if parameter.grad is not None]
        if grads:
            flat = torch.cat([grad.flatten() for grad in grads])
            dist.all_reduce(flat)
            parts = torch.split(flat, [grad.numel() for grad in grads])
            for grad, part in zip(grads, parts, strict=True):
                grad.copy_(part.view_as(grad))
        columns = [self._gather_rows(part) for part in (table.rows, table.weight, table.bias)]
        return coalesce([RowGradient(*part) for part in zip(*columns, strict=True)])

    def mean(self, values: Sequence[float]) -> list[float]:
        """Of each value the mean over all processes."""
        if self.count == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(tensor)
        return [float(value) / self.count for value in tensor]

    def from_leader(self, value: float) -> float:
        """The leading process's value, so that all decide alike."""
        if self.count == 1:
            return value
        tensor = torch.tensor([value], dtype=torch.float64)
        dist.broadcast(tensor, 0)
        return float(tensor)

    def gather_state(self, state: Sequence[LayerState]) -> list[LayerState]:
        """The state of all rows of the batch."""
        if self.count == 1:
            return list(state)
        return [
            LayerState(*(torch.cat(self._gather(part), dim=1) for part in (layer.hidden, layer.cell)))
            for layer in state
        ]

    def wait(self) -> None:
        """Wait until all are here."""
        if self.count > 1:
            dist.barrier()

    def _gather(self, part: Tensor) -> list[Tensor]:
        parts = [torch.empty_like(part) for _ in range(self.count)]
        dist.all_gather(parts, part.contiguous())
        return parts

    def _gather_rows(self, part: Tensor) -> list[Tensor]:
        """The same of tensors whose first axis differs."""
        sizes = [int(size) for size in self._gather(torch.tensor([len(part)], device=part.device))]
        padded = part.new_zeros(max(sizes), *part.shape[1:])
        padded[: len(part)] = part
        return [other[:size] for other, size in zip(self._gather(padded), sizes, strict=True)]
