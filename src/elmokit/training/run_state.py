"""The state of a run: saved to checkpoints and restored from them."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from elmokit.base import setting_changes
from elmokit.errors import ConfigError, TrainingError
from elmokit.training.checkpoints import Checkpoints
from elmokit.training.job import Job, Position
from elmokit.training.processes import Processes

_MOST_ROLLBACKS = 6


class RunState:
    """A job, its position, and their checkpoints in the folder of the run."""

    def __init__(self, job: Job, folder: Path, settings: dict[str, Any], processes: Processes) -> None:
        self.job, self.folder, self.position = job, folder, Position()
        self._settings, self._processes = settings, processes
        self._checkpoints = Checkpoints(folder)
        self._saved_at = 0.0

    @property
    def unsaved_seconds(self) -> float:
        """Seconds of training since the last checkpoint."""
        return self.position.seconds - self._saved_at

    def save(self) -> None:
        """Write a checkpoint. All processes take part, one writes."""
        self._saved_at = self.position.seconds
        content = {
            "position": asdict(self.position),
            "settings": self._settings,
            "job": self.job.state_dict(),
        }
        if self._processes.leads:
            self._checkpoints.save(self.position.step, content, best=self.position.best_step)
        self._processes.wait()

    def restore(self, step: int | None = None) -> None:
        """Continue from the newest checkpoint, or from that of a step; do nothing if there is none.

        Raises:
            ConfigError: It was made with other settings.
        """
        kept = self._checkpoints.load(step)
        if kept is None:
            return
        changes = setting_changes(kept["settings"], self._settings)
        if changes:
            raise ConfigError(
                f"{self.folder} was started with other settings: {'; '.join(changes)}. Resume it with the "
                "settings it was started with, or start anew in another folder"
            )
        self.position = Position(**kept["position"])
        self._saved_at = self.position.seconds
        self.job.load_state_dict(kept["job"])

    def roll_back(self) -> str:
        """Return to the last checkpoint with half the learning rate; say so in words.

        Raises:
            TrainingError: That has been tried too often.
        """
        step, factor = self.position.step, self.position.rate_factor / 2
        rollbacks = self.position.rollbacks + 1
        if rollbacks > _MOST_ROLLBACKS:
            raise TrainingError(
                f"the loss exploded again at step {step}, after {_MOST_ROLLBACKS} returns to a checkpoint, "
                "each with half the learning rate; use a smaller learning_rate or a longer warmup"
            )
        self.restore()
        self.position.rate_factor, self.position.rollbacks = factor, rollbacks
        return (
            f"the loss exploded at step {step}: back to the checkpoint of step {self.position.step}, "
            f"learning rate × {factor:g}"
        )
