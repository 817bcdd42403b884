"""Learning rates: one for the task's own weights, and smaller ones for lower layers of tuned encoders."""

from typing import Any

import torch

from elmokit.errors import ConfigError
from elmokit.tasks.core.task_model import TaskModel
from elmokit.tasks.core.task_settings import TrainingSettings


def make_optimizer(model: TaskModel[Any, Any, Any], settings: TrainingSettings) -> torch.optim.AdamW:
    """Return AdamW with a group for the task's weights and one for each tuned layer (Howard and Ruder 2018).

    Raises:
        ConfigError: `tune_from` is above the encoder's top layer.
    """
    use = model.task.settings.encoder
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
    groups.append({"params": own, "lr": settings.learning_rate})
    return torch.optim.AdamW(groups, weight_decay=settings.weight_decay, fused=True)


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
