"""Which weights move, and how fast: the task's own at one rate, an encoder's layers the slower the lower."""

import torch

from elmokit.errors import ConfigError
from elmokit.tasks.model import TaskModel
from elmokit.tasks.settings import TrainingSettings


def make_optimizer(model: TaskModel, settings: TrainingSettings) -> torch.optim.AdamW:
    """AdamW with a group for the task's own weights and one for each tuned layer (Howard and Ruder 2018).

    Raises:
        ConfigError: `tune_from` is above the encoder's top layer.
    """
    use = model.config.settings.encoder
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


def unfreeze(model: TaskModel, epoch: int) -> None:
    """Let the layers move that may in this epoch: those from `tune_from` up, gradually one more an epoch."""
    use = model.config.settings.encoder
    for module in model.inputs.tuned_parts().values():
        stages = module.stages()
        lowest = use.tune_from or 0
        if use.gradual:
            lowest = max(lowest, len(stages) - epoch)
        for depth, stage in enumerate(stages):
            for weight in stage:
                weight.requires_grad_(depth >= lowest)
