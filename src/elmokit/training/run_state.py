"""The state of a run: saved to checkpoints and restored from them."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from elmokit.base import setting_changes
from elmokit.errors import ConfigError, DataError, TrainingError
from elmokit.training.checkpoints import Checkpoints
from elmokit.training.job import Job, Position
from elmokit.training.processes import Processes

_MOST_ROLLBACKS = 6
# What the content of another run's checkpoint may raise.
_UNFIT = (LookupError, TypeError, AttributeError, RuntimeError, ValueError, OverflowError)


@dataclass(frozen=True)
class RunSummary:
    """How far a run has come, as its newest checkpoint says.

    Attributes:
        progress: The share of its budget that is used up; None where the checkpoint is of version 0.1.
        step: Steps so far.
        tokens: Tokens read so far.
        seconds: Time spent so far.
    """

    progress: float | None
    step: int
    tokens: int
    seconds: float


def summarise_run(folder: Path) -> RunSummary | None:
    """Summarise the run in a folder; None if it has no checkpoint.

    Raises:
        DataError: None of the checkpoints can be read, or the newest one is of something else.
    """
    kept = Checkpoints(folder).load(mapped=True)
    if kept is None:
        return None
    try:
        at, share = kept["position"], kept.get("progress")
        progress = None if share is None else float(share)
        return RunSummary(progress, int(at["step"]), int(at["tokens"]), float(at["seconds"]))
    except _UNFIT as error:
        raise DataError(
            f"{folder} has a checkpoint of something else ({type(error).__name__}: {error}); delete its "
            "folder checkpoints and start again"
        ) from error


class RunState:
    """A job, its position, and their checkpoints in the folder of the run."""

    def __init__(
        self, job: Job, folder: Path, settings: dict[str, Any], processes: Processes, engine: str
    ) -> None:
        self.job, self.folder, self.position = job, folder, Position(engines=[engine])
        self._settings, self._processes, self._engine = settings, processes, engine
        self._checkpoints = Checkpoints(folder)
        self._saved_at = 0.0

    @property
    def unsaved_seconds(self) -> float:
        """Seconds of training since the last checkpoint."""
        return self.position.seconds - self._saved_at

    def save(self, progress: float) -> None:
        """Write a checkpoint, with the share of the budget that is used up. All processes take part."""
        self._saved_at = self.position.seconds
        content = {
            "position": asdict(self.position),
            "progress": progress,
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
            DataError: It is damaged, or of something else.
        """
        kept = self._checkpoints.load(step)
        if kept is None:
            return
        try:
            position = Position(**kept["position"])
            changes = setting_changes(kept["settings"], self._settings)
        except _UNFIT as error:
            raise self._unfit(error) from error
        if changes:
            raise ConfigError(
                f"{self.folder} was started with other settings: {'; '.join(changes)}. Resume it with the "
                "settings it was started with, or start again in another folder"
            )
        try:
            self.job.load_state_dict(kept["job"])
        except _UNFIT as error:
            raise self._unfit(error) from error
        position.continue_with(self._engine)
        self.position, self._saved_at = position, position.seconds

    def _unfit(self, error: Exception) -> DataError:
        return DataError(
            f"{self.folder} has a checkpoint that does not fit this run ({type(error).__name__}: {error}); "
            "delete its folder checkpoints and start again"
        )

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
