"""Checkpoints of a run: the last few, and the best.

A checkpoint is a file of `torch.save`: a zip archive with a checksum of each part, which are verified before
anything of it is used.
"""

import logging
import lzma
import pickle
import re
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import torch

from elmokit.base import draft_file, write_errors
from elmokit.errors import DataError
from elmokit.formats import load_pickled

logger = logging.getLogger(__name__)

_NAME = re.compile(r"step-(\d+)\.pt")
# What reading a damaged file, or one of something else, may raise.
_UNREADABLE = (
    *(OSError, RuntimeError, EOFError, ValueError, LookupError, AttributeError, TypeError),
    *(pickle.UnpicklingError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
)


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
        """Write a checkpoint, then delete old ones, except that of step `best`, and damaged later ones.

        Raises:
            DataError: The disk is full or may not be written; earlier checkpoints are untouched.
        """
        target = self._path(step)
        # torch reports a failed write as a RuntimeError.
        with write_errors(target, "continue with resume=True", also=(RuntimeError,)):
            self._folder.mkdir(parents=True, exist_ok=True)
            with draft_file(target) as draft:
                torch.save(content, draft)
            newest = self._all().index(target)
            for old in (*self._all()[: max(0, newest + 1 - self._keep)], *self._all()[newest + 1 :]):
                if best is None or old != self._path(best):
                    old.unlink(missing_ok=True)

    def load(self, step: int | None = None, *, mapped: bool = False) -> dict[str, Any] | None:
        """Return the content of a checkpoint; None if there is none.

        Args:
            step: That of this step; by default the newest one that is not damaged.
            mapped: Read no tensor before it is used, and verify no checksum.

        Raises:
            DataError: None of them can be read.
        """
        paths = self._all()[::-1] if step is None else [self._path(step)]
        for path in paths:
            try:
                return _read(path, mapped=mapped)
            except _UNREADABLE as error:
                logger.warning("the checkpoint %s is damaged and is skipped (%s)", path, error)
        if paths:
            raise DataError(
                f"no checkpoint in {self._folder} can be read ({', '.join(path.name for path in paths)}); "
                "delete that folder and start again"
            )
        return None

    def _path(self, step: int) -> Path:
        return self._folder / f"step-{step:09d}.pt"

    def _all(self) -> list[Path]:
        if not self._folder.is_dir():
            return []
        return sorted(path for path in self._folder.iterdir() if _NAME.fullmatch(path.name))


def _read(path: Path, *, mapped: bool) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive:
        damaged = None if mapped else archive.testzip()
    if damaged is not None:
        raise zipfile.BadZipFile(f"the checksum of {damaged} is wrong")
    content = load_pickled(path, mapped=mapped)
    if not isinstance(content, dict):
        raise TypeError("it does not hold a run")
    return content
