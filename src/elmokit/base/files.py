"""The one way to write a file: write a draft beside it, flush it to disk, rename it to the final name.

A reader therefore sees either the old file or the new one, complete, even after an error, Ctrl-C, `kill -9`
or a power failure. Nothing else in elmokit renames, flushes or replaces files.
"""

import errno
import json
import math
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from elmokit.errors import DataError

_WINDOWS = os.name == "nt"
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Endings of what a killed process may leave: something unfinished, and a folder that was being replaced.
DRAFT, REPLACED = "draft", "replaced"
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # of Linux


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
    draft = draft or aside(path)
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
def no_empty_folder(path: Path) -> Iterator[None]:
    """Remove the folder `path` if the block has made it, raises, and leaves no file in it."""
    existed = path.exists()
    try:
        yield
    except BaseException:
        if not existed and not any(file.is_file() for file in path.rglob("*")):
            shutil.rmtree(path, ignore_errors=True)
        raise


@contextmanager
def draft_folder(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Yield an empty folder to fill; at the end of the block, it becomes `path`.

    `path` must not exist or be empty, unless `overwrite` is true. If the block raises, it stays as it was.
    """
    path = path.resolve()
    draft = aside(path)
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
            _exchange(draft, path)
        else:
            if path.exists():
                path.rmdir()  # raises unless it is empty
            draft.rename(path)
        flush_to_disk(path.parent)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _exchange(draft: Path, path: Path) -> None:
    """Let two folders change places, in one step where the system can."""
    import ctypes  # slow, and rarely needed

    in_one_step = None if _WINDOWS else getattr(ctypes.CDLL(None), "renameat2", None)
    names = os.fsencode(draft), os.fsencode(path)
    if in_one_step and in_one_step(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0:
        return
    replaced = aside(path, REPLACED)
    path.rename(replaced)  # between the two renames `remove_remains` would bring it back
    draft.rename(path)
    replaced.rename(draft)


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
    write_text(path, to_json(content, indent=2) + "\n")


def to_json(content: Any, *, indent: int | None = None) -> str:  # noqa: ANN401 (whatever JSON can hold)
    """Return JSON text; numbers that JSON does not have, such as infinity, become null."""
    try:
        return json.dumps(content, indent=indent, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(content), indent=indent, ensure_ascii=False)


def _finite(content: Any) -> Any:  # noqa: ANN401 (whatever JSON can hold)
    if isinstance(content, dict):
        return {name: _finite(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


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


def move_files(source: Path, target: Path, *, last: str) -> None:
    """Move all files of a folder into another one, replacing those of the same names; delete the folder.

    The old file named `last` is deleted first, and the new one moved last: while it is there, all belong
    together.
    """
    (target / last).unlink(missing_ok=True)
    flush_to_disk(target)
    for file in sorted(source.iterdir(), key=lambda file: file.name == last):
        if file.name == last:
            flush_to_disk(target)
        file.replace(target / file.name)
    flush_to_disk(target)
    source.rmdir()


def remove_folder(path: Path) -> None:
    """Delete a folder, if it exists; after a kill it is there as a whole, or no longer there."""
    if path.is_dir():
        draft = aside(path)
        try:
            path.rename(draft)
        except OSError:  # Windows does not rename a folder with open files
            draft = path
        shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def write_errors(
    output: Path,
    todo: str | Callable[[], str] = "choose a place you may write to",
    *,
    also: tuple[type[Exception], ...] = (),
) -> Iterator[None]:
    """Turn an error of the file system into a DataError that says what to do.

    Args:
        output: What is being written, for the message.
        todo: What to do about it; a function is called when the error has happened.
        also: What other libraries raise when a write fails.
    """
    expected: tuple[type[Exception], ...] = (OSError, *also)
    try:
        yield
    except expected as error:
        advice = todo if isinstance(todo, str) else todo()
        number = getattr(error, "errno", None)
        if number in _DISK_FULL or os.strerror(errno.ENOSPC) in str(error):
            advice = f"free some space; {advice}"
        elif number is None:  # NumPy and torch say only that not all could be written
            advice = f"the disk may be full; {advice}"
        raise DataError(f"cannot write {output}: {plain_reason(error)}; {advice}") from error


def plain_reason(error: Exception) -> str:
    """Say in a few words why the system refused: "No space left on device"."""
    return getattr(error, "strerror", None) or str(error).partition("\n")[0]


def aside(path: Path, kind: str = DRAFT) -> Path:
    """Return a new name beside `path`."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.{kind}")
