"""Checkpoints of a run: the last few, and the best."""

import pickle
import re
from pathlib import Path
from typing import Any

import torch

from elmokit.base import draft_file, plain_reason, remove_drafts
from elmokit.errors import DataError

_NAME = re.compile(r"step-(\d+)\.pt")


class Checkpoints:
    """The checkpoints in the folder of a run.

    Args:
        run: The folder; checkpoints are in its subfolder `checkpoints`.
        keep: How many of the latest to keep.
    """

    def __init__(self, run: Path, *, keep: int = 2) -> None:
        self._folder, self._keep = run / "checkpoints", keep

    @property
    def exist(self) -> bool:
        """Whether there is any checkpoint."""
        return bool(self._all())

    def save(self, step: int, content: dict[str, Any], *, best: int | None = None) -> None:
        """Write a checkpoint, then delete old ones, except that of step `best`.

        Raises:
            DataError: The disk is full or may not be written; earlier checkpoints are untouched.
        """
        target = self._path(step)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            remove_drafts(self._folder)  # a killed run may have left one
            with draft_file(target) as draft:
                torch.save(content, draft)
        except (OSError, RuntimeError) as error:  # torch reports a failed write as a RuntimeError
            earlier = "the one before it is whole" if self.exist else "there is none before it"
            raise DataError(
                f"the checkpoint {target} cannot be written ({plain_reason(error)}); make room and continue "
                f"with resume=True: {earlier}"
            ) from error
        for old in self._all()[: -self._keep]:
            if best is None or old != self._path(best):
                old.unlink(missing_ok=True)

    def load(self, step: int | None = None) -> dict[str, Any] | None:
        """Return the content of the newest checkpoint, or of that of a step; None if there is none.

        Raises:
            DataError: It cannot be read.
        """
        if not self.exist:
            return None
        path = self._all()[-1] if step is None else self._path(step)
        try:
            content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
            raise DataError(
                f"the checkpoint {path} is damaged or not one of elmokit's; remove it to continue from the "
                "one before it"
            ) from error
        return content

    def _path(self, step: int) -> Path:
        return self._folder / f"step-{step:09d}.pt"

    def _all(self) -> list[Path]:
        if not self._folder.is_dir():
            return []
        return sorted(path for path in self._folder.iterdir() if _NAME.fullmatch(path.name))
