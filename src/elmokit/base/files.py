"""The one way to write a file: write a draft beside it, flush it to disk, rename it to the final name.

A reader therefore sees either the old file or the new one, complete, even after an error, Ctrl-C, `kill -9`
or a power failure. Nothing else in elmokit renames, flushes or replaces files.
"""

import glob
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

_WINDOWS = os.name == "nt"


@contextmanager
def draft_file(path: Path, *, draft: Path | None = None) -> Iterator[Path]:
    """Yield a path to write to; at the end of the block, that file becomes `path`.

    Any library may write the draft. If the block raises, the draft is deleted and `path` stays as it was. A
    symbolic link stays and the file behind it is replaced. What is not a regular file, such as a pipe, is
    written directly. A caller that cleans up after killed processes can choose the name of the `draft`.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    path = path.resolve()
    draft = draft or _draft_name(path)
    draft.touch()
    mode = draft.stat().st_mode  # as the umask sets it; some libraries make private files
    try:
        yield draft
        draft.chmod(mode)
        flush_to_disk(draft)
        draft.replace(path)
        flush_to_disk(path.parent)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


@contextmanager
def draft_folder(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Yield an empty folder to fill; at the end of the block, it becomes `path`.

    `path` must not exist or be empty, unless `overwrite` is true. If the block raises, it stays as it was.
    """
    path = path.resolve()
    draft, old = _draft_name(path), _draft_name(path)
    draft.mkdir(parents=True)
    plain = draft / ".mode"
    plain.touch()
    mode = plain.stat().st_mode
    plain.unlink()
    try:
        yield draft
        for file in sorted(draft.rglob("*")):
            if file.is_file():
                file.chmod(mode)
            flush_to_disk(file)
        flush_to_disk(draft)
        if overwrite and path.exists():
            path.rename(old)
        elif path.exists():
            path.rmdir()  # raises unless it is empty
        draft.rename(path)
        flush_to_disk(path.parent)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield an empty folder that is deleted at the end; Windows keeps files that are still in use."""
    with TemporaryDirectory(prefix="elmokit-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def write_bytes(path: Path, content: bytes) -> None:
    """Replace the content of a file."""
    with draft_file(path) as draft:
        draft.write_bytes(content)


def write_text(path: Path, content: str) -> None:
    """Replace the content of a UTF-8 text file; a lone surrogate is written as its escape."""
    write_bytes(path, content.encode(errors="backslashreplace"))


def write_json(path: Path, content: Any) -> None:  # noqa: ANN401 (whatever JSON can hold)
    """Replace the content of a file by indented JSON."""
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def flush_to_disk(path: Path) -> None:
    """Wait until a file, or the list of files in a folder, has reached the disk."""
    if _WINDOWS and path.is_dir():  # Windows cannot open a folder, and need not flush it
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def fresh_folder(path: Path) -> Path:
    """Make an empty folder, deleting what an earlier run left there."""
    if path.exists():
        shutil.rmtree(path)
    path.mkdir()
    return path


def move_files(source: Path, target: Path) -> None:
    """Move all files of a folder into another one, replacing those of the same names; delete the folder."""
    for file in sorted(source.iterdir()):
        file.replace(target / file.name)
    flush_to_disk(target)
    source.rmdir()


def remove_drafts(folder: Path, name: str | None = None) -> None:
    """Delete drafts that a killed process has left in a folder: all, or those of one name."""
    pattern = ".*.draft" if name is None else f".{glob.escape(name)}.{'?' * 8}.draft"
    for draft in folder.glob(pattern):
        shutil.rmtree(draft) if draft.is_dir() else draft.unlink()


def plain_reason(error: Exception) -> str:
    """Say in a few words why the system refused: "No space left on device"."""
    return getattr(error, "strerror", None) or str(error)


def _draft_name(path: Path) -> Path:
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.draft")
