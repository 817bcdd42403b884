"""What an operation is that can be interrupted, and what is needed to try it again and again."""

import contextlib
import hashlib
import importlib
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmokit.base.figures import fonts


@dataclass(frozen=True)
class Operation:
    """Something that writes into a folder, which is empty or has an old result.

    Attributes:
        run: does it.
        again: what a user does after it was interrupted.
        content: its result in a form that can be compared, None if there is none.
        old: writes an old result, which is to be replaced.
        may_vanish: whether there may be no result while it is replaced; a checkpoint holds all of it.
        waits: for another process that does the same.
    """

    name: str
    run: Callable[[Path], Any]
    again: Callable[[Path], Any]
    content: Callable[[Path], Any]
    old: Callable[[Path], Any] | None = None
    may_vanish: bool = False
    waits: bool = False


hidden: dict[str, Any] = {}


def hide_matplotlib() -> None:
    """Let training draw nothing: pictures would take most of the time."""
    with contextlib.suppress(ImportError):
        importlib.import_module("matplotlib.backends.backend_agg")
        fonts()
        hidden["matplotlib"] = sys.modules["matplotlib"]
    sys.modules["matplotlib"] = None  # type: ignore[assignment]


def show_matplotlib() -> None:
    """Undo `hide_matplotlib`."""
    sys.modules |= hidden


def digest(content: Any) -> str | None:
    return None if content is None else hashlib.sha256(repr(content).encode()).hexdigest()


def files(folder: Path, *names: str) -> list[Any] | None:
    """The bytes of files of a folder, or of all; None if the first does not exist."""
    if not (folder / names[0] if names else folder).exists():
        return None
    found = [folder / name for name in names] or [path for path in folder.rglob("[!.]*") if path.is_file()]
    return [(str(path.relative_to(folder)), path.read_bytes()) for path in sorted(found)]


def copy_start(operation: Operation, starts: Path, folder: Path) -> None:
    """Make the folder of a case."""
    start = starts / operation.name
    shutil.copytree(start, folder) if start.exists() else folder.mkdir()
