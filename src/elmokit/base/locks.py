"""One writer per output: a lock that ends with its holder, however that ends.

The lock is the operating system's, on a small file `.NAME.lock` beside the output, which also names the
holder. A killed process leaves that file behind, but not the lock.
"""

import glob
import json
import logging
import os
import re
import shutil
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from elmokit.base.files import DRAFT, REPLACED, aside, draft_file, write_errors
from elmokit.errors import BusyError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.05
# What this process holds: the descriptor of the locked file, and the thread that may enter again.
_held: dict[Path, tuple[int, int]] = {}


@contextmanager
def locked(
    output: Path, *, parents: bool = False, wait: Callable[[str], object] | None = None
) -> Iterator[None]:
    """Hold a file or folder while it is written; it need not exist yet.

    Remains of earlier attempts, left by killed processes, are deleted first. A thread that holds the output
    may enter again. An output that is neither file nor folder, such as a pipe, is not locked. On a file
    system without locks a warning is logged, and nothing is held.

    Args:
        output: The file or folder.
        parents: Make the folder that it is in, if that does not exist.
        wait: Wait for another holder, after calling this with a sentence that names it.

    Raises:
        BusyError: Another process, or another thread, holds it.
        DataError: The folder that it is in cannot be written.
    """
    path = output.resolve()
    if _held.get(path, (0, 0))[1] == threading.get_ident() or _is_special(path):
        yield
        return
    with write_errors(output):
        if parents:
            path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, lock = _acquire(path, output, wait)
    _held[path] = descriptor, threading.get_ident()
    try:
        remove_remains(path)
        yield
    finally:
        if _held.pop(path, None) is not None:  # else this is a forked process, which holds nothing
            _release(descriptor, lock)


@contextmanager
def output_file(path: Path) -> Iterator[Path]:
    """Yield a draft as `draft_file` does, holding the lock of the file; errors become DataErrors."""
    with locked(path), write_errors(path), draft_file(path) as draft:
        yield draft


def remove_remains(path: Path) -> None:
    """Delete the drafts of a file or folder, and those in the folder, which killed processes have left.

    Call this only while holding the lock of `path`: otherwise the drafts may belong to a process at work. In
    the folder, drafts of files whose own lock is held are kept.
    """
    with suppress(OSError):
        for replaced in path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 8}.{REPLACED}"):
            replaced.rename(aside(path) if path.exists() else path)
        drafts = list(path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 8}.{DRAFT}"))
        if path.is_dir():
            drafts += _drafts_in(path)
        for draft in drafts:
            shutil.rmtree(draft, ignore_errors=True) if draft.is_dir() else draft.unlink()


def _drafts_in(folder: Path) -> Iterator[Path]:
    for path in list(folder.iterdir()):
        of = re.fullmatch(rf"\.(.+)\.[0-9a-f]{{8}}\.{DRAFT}", path.name)
        if _is_held(_lock_file(folder / of[1] if of else path)):
            continue
        if of:
            yield path
        elif path.is_dir() and not path.is_symlink():
            yield from _drafts_in(path)


def is_held(output: Path) -> bool:
    """Return whether a process holds a file or folder, to write it."""
    try:
        return _is_held(_lock_file(output.resolve()))
    except OSError:  # such as a lock in a folder that may not be written
        return False


def _is_held(lock: Path) -> bool:
    """Return whether a process holds this lock; if none does, delete its file."""
    if not lock.exists():
        return False
    descriptor = os.open(lock, os.O_RDWR)
    try:
        _lock(descriptor)
    except OSError:
        os.close(descriptor)
        return True
    _release(descriptor, lock)
    return False


def _lock_file(path: Path) -> Path:
    return path.with_name(f".{path.name}.lock")


def _is_special(path: Path) -> bool:
    return path.exists() and not (path.is_file() or path.is_dir())


def _acquire(path: Path, output: Path, wait: Callable[[str], object] | None) -> tuple[int, Path | None]:
    """Return the descriptor of the locked file, and its path if it is to be deleted at the end."""
    while True:
        descriptor, lock = _open(path)
        try:
            _lock(descriptor)
        except (BlockingIOError, PermissionError):
            message = f"{output} is being written by {_holder(descriptor)}"
            os.close(descriptor)
            if wait is None:
                raise BusyError(f"{message}; wait for it, or choose another name") from None
            wait(f"{message}; waiting for it")
            wait = _say_nothing
            time.sleep(_POLL_SECONDS)
            continue
        except OSError as error:  # such as ENOLCK of a network file system
            logger.warning(
                "%s is on a file system without locks (%s): do not let two processes write it", output, error
            )
            return descriptor, lock
        with suppress(OSError):  # the previous holder may have deleted the file meanwhile: then try again
            if os.path.samestat(os.fstat(descriptor), (lock or path).stat()):
                _write_holder(descriptor, lock)
                return descriptor, lock
        os.close(descriptor)


def _open(path: Path) -> tuple[int, Path | None]:
    lock = _lock_file(path)
    try:
        return os.open(lock, os.O_RDWR | os.O_CREAT, 0o666), lock
    except OSError:
        if not path.is_dir():
            raise
        return os.open(path, os.O_RDONLY), None  # a writable folder in a read-only one is locked itself


def _release(descriptor: int, lock: Path | None) -> None:
    if sys.platform == "win32":  # an open file cannot be deleted there
        os.close(descriptor)
    with suppress(OSError):
        if lock is not None:
            lock.unlink()
    if sys.platform != "win32":  # deleted while it is held, so nobody deletes a lock of the next holder
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    if sys.platform == "win32":
        os.lseek(descriptor, 1 << 20, os.SEEK_SET)  # beyond the text, which others may then read
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _write_holder(descriptor: int, lock: Path | None) -> None:
    holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": f"{datetime.now():%F %T}"}
    if lock is not None:
        with suppress(OSError):  # on a full disk the lock holds all the same
            os.ftruncate(descriptor, 0)
            os.write(descriptor, json.dumps(holder).encode())


def _holder(descriptor: int) -> str:
    try:
        found = json.loads(os.read(descriptor, 1000))
        return f"process {found['pid']} on {found['host']} since {found['since']}"
    except (OSError, ValueError, KeyError, TypeError):  # it has not written its name, or could not
        return "another process"


def _say_nothing(message: str) -> None:
    pass


def _forget() -> None:
    """Let go of all locks in a forked process: they must end with their holder."""
    for descriptor, _ in _held.values():
        os.close(descriptor)
    _held.clear()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forget)
