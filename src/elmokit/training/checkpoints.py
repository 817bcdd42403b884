"""Checkpoints: written aside, made safe on the disk and renamed, so that one is whole or is not there."""

import os
import pickle
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from elmokit.errors import DataError

_NAME = re.compile(r"step-(\d+)\.pt")


class Checkpoints:
    """The checkpoints of a run, the last `keep` of them.

    Args:
        folder: where they lie.
        keep: how many.
    """

    def __init__(self, folder: Path, keep: int = 2) -> None:
        self._folder, self._keep = folder, keep

    @classmethod
    def of(cls, run: Path) -> "Checkpoints":
        """Those of a run, by its folder."""
        return cls(run / "checkpoints")

    @property
    def exist(self) -> bool:
        """Whether there is any."""
        return bool(self._all())

    def save(self, step: int, content: dict[str, Any]) -> None:
        """Write one, then remove those that are too old.

        Raises:
            DataError: there is no room, or no permission; the ones before it are as they were.
        """
        target = self._folder / f"step-{step:09d}.pt"
        aside = target.with_suffix(".part")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for killed in self._folder.glob("*.part"):  # what a killed run was writing
                killed.unlink()
            with aside.open("wb") as file:
                torch.save(content, file)
                file.flush()
                os.fsync(file.fileno())
            aside.replace(target)
        except (OSError, RuntimeError) as error:  # torch reports a failed write as a RuntimeError
            with suppress(OSError):
                aside.unlink(missing_ok=True)
            raise DataError(
                f"the checkpoint {target} cannot be written ({error}); make room and go on with --resume: "
                f"{'the one before it is whole' if self._all() else 'there is none before it'}"
            ) from error
        for old in self._all()[: -self._keep]:
            old.unlink(missing_ok=True)

    def load(self) -> dict[str, Any] | None:
        """The newest, or None if there is none.

        Raises:
            DataError: it cannot be read.
        """
        found = self._all()
        if not found:
            return None
        try:
            content: dict[str, Any] = torch.load(found[-1], map_location="cpu", weights_only=True)
        except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
            raise DataError(
                f"the checkpoint {found[-1]} is damaged, or none of elmokit's; remove it, to go on from the "
                "one before it"
            ) from error
        return content

    def _all(self) -> list[Path]:
        if not self._folder.is_dir():
            return []
        return sorted(path for path in self._folder.iterdir() if _NAME.fullmatch(path.name))
