"""The one training loop and what it needs: checkpoints, metrics, several processes."""

from elmokit.training.checkpoints import Checkpoints
from elmokit.training.metrics import Metrics, read_metrics
from elmokit.training.processes import Processes

__all__ = [
    "Checkpoints",
    "Metrics",
    "Processes",
    "read_metrics",
]
