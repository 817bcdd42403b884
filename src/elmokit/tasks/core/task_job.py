"""A task as a job of the training loop: its batches, steps and learning rates.

All random numbers of a step follow from the seed and the number of the step, the order of the batches from
the seed and the number of the epoch.
"""

import math
import time
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import torch
from torch import nn

from elmokit.errors import ConfigError
from elmokit.kernels import Dropout, combined_seed, seeded
from elmokit.tasks.core.dataset import TaskData
from elmokit.tasks.core.protocol import E
from elmokit.tasks.core.task_model import TaskModel, num_tokens
from elmokit.training import Evaluation, StepResult

Item = TypeVar("Item")

_NOISE = 0.1  # share of a length, so that batches differ from epoch to epoch


class TaskJob(Generic[E]):
    """The training of a task model; see `training.Job`.

    Args:
        model: on its device.
        data: prepared examples.
    """

    def __init__(self, model: TaskModel[E, Any, Any], data: TaskData[E]) -> None:
        self._model, self._data, self._settings = model, data, model.task.settings.training
        self._optimizer = make_optimizer(model)
        self._rates = [group["lr"] for group in self._optimizer.param_groups]
        self._generator = torch.Generator()
        for module in model.modules():
            if isinstance(module, Dropout):
                module.generator = self._generator
        self._batch: int = self._settings.batch
        self._passes: int = self._settings.passes(len(data.train))
        self._epoch, self._batches = -1, [data.train]
        self._seconds = 0.0  # of this epoch, without evaluation

    @property
    def steps_per_epoch(self) -> int:
        """Steps of an epoch, which passes over little data several times."""
        return self._passes * -(-len(self._data.train) // self._batch)

    def compute(self, step: int) -> StepResult:
        """Compute loss and gradients of a step."""
        began = time.monotonic()
        epoch, place = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            self._start_epoch(epoch)
        if place == 0:
            self._seconds = 0.0
        batch = self._batches[place]
        self._model.train()
        self._optimizer.zero_grad()
        self._generator.manual_seed(combined_seed(self._settings.seed, step))
        # Modules of other libraries draw from the global generator: not the same numbers as ours.
        with seeded(self._settings.seed, step, 2):
            loss = self._model.loss(batch)
            loss.backward()  # type: ignore[no-untyped-call]
        self._seconds += time.monotonic() - began
        return StepResult(loss.item(), sum(map(num_tokens, batch)), {"loss": loss.item()})

    def update(self, rate: float) -> float:
        """Clip the gradients and change the weights, each group by `rate` times its own learning rate."""
        began = time.monotonic()
        norm = float(nn.utils.clip_grad_norm_(self._model.parameters(), self._settings.clip_norm))
        if math.isfinite(norm):
            for group, own in zip(self._optimizer.param_groups, self._rates, strict=True):
                group["lr"] = rate * own
            self._optimizer.step()
        self._seconds += time.monotonic() - began
        return norm

    def evaluate(self) -> Evaluation:
        """Score the dev examples."""
        dev = self._data.dev
        scores = self._model.task.score(dev, self._model.decode(dev))
        record = {"epoch": self._epoch + 1, "dev": scores.value, "metric": scores.main}
        text = f"dev {scores.main} {100 * scores.value:.2f}"
        return Evaluation(record | {"epoch_seconds": self._seconds}, text, scores.value)

    def state_dict(self) -> dict[str, Any]:
        """Return model, optimizer and the time spent in this epoch."""
        return {
            "model": self._model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "seconds": self._seconds,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        self._model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._seconds = state["seconds"]

    def _start_epoch(self, epoch: int) -> None:
        generator = torch.Generator().manual_seed(combined_seed(self._settings.seed, epoch, 1))
        lengths = [num_tokens(example) for example in self._data.train]
        self._batches = [
            batch
            for _ in range(self._passes)
            for batch in shuffled_batches(self._data.train, lengths, self._batch, generator)
        ]
        unfreeze(self._model, epoch + 1)
        self._epoch = epoch


def shuffled_batches(
    items: Sequence[Item], lengths: Sequence[int], size: int, generator: torch.Generator
) -> list[list[Item]]:
    """Return all items in batches of `size` (one may be smaller), sorted by length with some noise."""
    noise = 1 + _NOISE * (2 * torch.rand(len(items), generator=generator) - 1)
    order = torch.argsort(torch.tensor(lengths) * noise, stable=True).tolist()
    batches = [order[start : start + size] for start in range(0, len(order), size)]
    places = torch.randperm(len(batches), generator=generator).tolist()
    return [[items[row] for row in batches[place]] for place in places]


def make_optimizer(model: TaskModel[Any, Any, Any]) -> torch.optim.AdamW:
    """Return AdamW with a group for the task's weights and one for each tuned layer (Howard and Ruder 2018).

    Raises:
        ConfigError: `tune_from` is above the encoder's top layer.
    """
    use, training = model.task.settings.encoder, model.task.settings.training
    groups = []
    tuned = set()
    for module in model.inputs.tuned_parts().values():
        stages = module.stages()
        first = use.tune_from or 0
        if first >= len(stages):
            raise ConfigError(f"tune_from is {first}, but the encoder's layers are 0 to {len(stages) - 1}")
        tuned |= set(module.parameters())
        for depth, stage in enumerate(reversed(stages[first:])):
            groups.append({"params": stage, "lr": use.learning_rate * use.layer_decay**depth})
    own = [weight for weight in model.parameters() if weight not in tuned]
    groups.append({"params": own, "lr": training.learning_rate})
    return torch.optim.AdamW(groups, weight_decay=training.weight_decay, fused=True)


def unfreeze(model: TaskModel[Any, Any, Any], epoch: int) -> None:
    """Set which layers are trainable in this epoch: from `tune_from` up, or gradually one more per epoch."""
    use = model.task.settings.encoder
    for module in model.inputs.tuned_parts().values():
        stages = module.stages()
        lowest = use.tune_from or 0
        if use.gradual:
            lowest = max(lowest, len(stages) - epoch)
        for depth, stage in enumerate(stages):
            for weight in stage:
                weight.requires_grad_(depth >= lowest)
