"""Training by several processes (torchrun): each has some rows of the batch, and gradients are summed.

torch's DistributedDataParallel hooks into autograd's accumulation, which pretraining does not use (see
`pretraining/bilm/network.py`), and would exchange the whole softmax at every step. Here dense gradients are
summed as one flat tensor, and of a table only the rows that have a gradient are exchanged.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module

import torch
import torch.distributed as dist
from torch import Tensor

from elmokit.errors import ConfigError

_PATIENCE = timedelta(days=1)  # the others wait while one prepares the text or evaluates


@dataclass(frozen=True)
class Processes:
    """This process among those that train together."""

    rank: int = 0
    count: int = 1

    @classmethod
    @contextmanager
    def joined(cls, device: torch.device) -> Iterator["Processes"]:
        """Join the other processes where torchrun has started several, and leave them at the end."""
        count = int(os.environ.get("WORLD_SIZE", "1"))
        if count == 1 or dist.is_initialized():  # initialised by the caller, who also ends it
            yield cls() if count == 1 else cls(dist.get_rank(), count)
            return
        if device.type == "cuda":
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        # Functions of this module have the group as a default argument. If it were imported later (by
        # torch.optim), they would keep the group's threads until the interpreter has ended, which aborts.
        import_module("torch.distributed.nn.functional")
        # Numbers to agree on are on the CPU, gradients on the device.
        dist.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo", timeout=_PATIENCE)
        try:
            processes = cls(dist.get_rank(), count)
            yield processes
            processes.wait()  # gloo's threads abort a process whose partner has gone
        finally:
            dist.destroy_process_group()

    @property
    def leads(self) -> bool:
        """Whether this process writes files and messages."""
        return self.rank == 0

    def rows(self, batch: int) -> slice:
        """Return which rows of a batch belong to this process."""
        if batch % self.count:
            raise ConfigError(
                f"a batch of {batch} rows cannot be divided among {self.count} processes; choose a multiple"
            )
        each = batch // self.count
        return slice(self.rank * each, (self.rank + 1) * each)

    def sum_in_place(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all processes, in one exchange."""
        if self.count == 1 or not tensors:
            return
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        dist.all_reduce(flat)
        for tensor, part in zip(tensors, torch.split(flat, [t.numel() for t in tensors]), strict=True):
            tensor.copy_(part.view_as(tensor))

    def mean(self, values: Sequence[float]) -> list[float]:
        """Return the mean of each value over all processes."""
        if self.count == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(tensor)
        return [float(value) / self.count for value in tensor]

    def from_leader(self, values: Sequence[float]) -> list[float]:
        """Return the leading process's values, so that all processes decide alike."""
        if self.count == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64)
        dist.broadcast(tensor, 0)
        return [float(value) for value in tensor]

    def join_rows(self, part: Tensor, dim: int) -> Tensor:
        """Return the parts of all processes as one tensor, joined along `dim`."""
        return part if self.count == 1 else torch.cat(self._gather(part), dim=dim)

    def wait(self) -> None:
        """Wait until all processes have come here."""
        if self.count > 1:
            dist.barrier()

    def _gather(self, part: Tensor) -> list[Tensor]:
        parts = [torch.empty_like(part) for _ in range(self.count)]
        dist.all_gather(parts, part.contiguous())
        return parts

    def gather_rows(self, part: Tensor) -> list[Tensor]:
        """Return the tensors of all processes, whose first axes may differ."""
        sizes = [int(size) for size in self._gather(torch.tensor([len(part)], device=part.device))]
        padded = part.new_zeros(max(sizes), *part.shape[1:])
        padded[: len(part)] = part
        return [other[:size] for other, size in zip(self._gather(padded), sizes, strict=True)]
