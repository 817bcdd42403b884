"""Files that are whole or not there, and what the file system refuses, said clearly."""

import errno
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from elmokit.errors import DataError

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def synced(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing; on leaving, its content is on the disk."""
    with path.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def write_aside(path: Path, content: bytes) -> None:
    """Write a file under another name and rename it, so that it is there as a whole or not at all."""
    # The process id, since what a killed run leaves behind may still be writing.
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with synced(draft) as file:
            file.write(content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write JSON that a person can read."""
    write_aside(path, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())


def fresh_folder(path: Path) -> Path:
    """Make an empty folder, whatever an earlier run has left there."""
    if path.exists():
        shutil.rmtree(path)
    path.mkdir()
    return path


@contextmanager
def write_errors(out: Path, part: Path) -> Iterator[None]:
    """Turn what the file system refuses into one clear error."""
    try:
        yield
    except OSError as error:
        kept = f"what is done so far is kept in {part}: run the same again to go on"
        if error.errno in _NO_ROOM:
            todo = f"free some room (about two and a half times the size of the text is needed); {kept}"
        else:
            todo = kept if part.exists() else "choose a folder you may write to"
        raise DataError(f"cannot write {out}: {error.strerror or error}; {todo}") from error
