"""One copy of the same bytes for all processes of a machine.

Each block of bytes is written to a file that is named after their digest, in a folder of this user below the
temporary one, and mapped from there: the system then keeps its pages once, however many processes map them.
What a process writes to such memory is its own.

A process holds a shared lock on each file that it maps. Files that nobody holds are deleted by the next
process that shares anything.
"""

import ctypes
import hashlib
import logging
import mmap
import os
import stat
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.base.files import draft_file
from elmokit.base.locks import locked
from elmokit.errors import ElmoError

logger = logging.getLogger(__name__)

Bytes = npt.NDArray[np.uint8]

_MAP_PRIVATE, _MAP_FIXED = 2, 16  # of Linux
_files: dict[str, int] = {}  # the open files of this process, by digest; open files keep their locks


def shared_copy(content: Bytes) -> mmap.mmap | None:
    """Return memory with the same content, which all processes that ask for it share; None if impossible."""
    file = _file_with(content)
    return None if file is None else mmap.mmap(file, len(content), access=mmap.ACCESS_COPY)


def share_pages(blocks: Sequence[tuple[int, int]]) -> None:
    """Replace memory by pages that all processes with the same content share; the addresses stay.

    Args:
        blocks: Address and size of each block; no other thread may write to them meanwhile. Of a block only
            whole pages are replaced.
    """
    for address, size in blocks:
        begin = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE
        length = (address + size - begin) // mmap.PAGESIZE * mmap.PAGESIZE
        if length <= 0:
            continue
        content: Bytes = np.ctypeslib.as_array((ctypes.c_uint8 * length).from_address(begin))
        file = _file_with(content)
        if file is not None:
            _map_over(begin, length, file)


def _file_with(content: Bytes) -> int | None:
    """Return an open file with this content."""
    if not sys.platform.startswith("linux") or not len(content):
        return None
    digest = hashlib.sha256(content.data).hexdigest()
    if digest in _files:
        return _files[digest]
    try:
        folder = _own_folder()
        with locked(folder, wait=lambda _: None):
            if not _files:
                _delete_unused(folder)
            path = folder / f"{digest}.block"
            if not path.exists():
                with draft_file(path) as draft, draft.open("wb") as written:
                    written.write(content.data)
            file = os.open(path, os.O_RDONLY)
            _hold(file)
    except (OSError, ElmoError) as error:  # the model works without
        logger.warning("memory is not shared with other processes: %s", error)
        return None
    if not np.array_equal(np.memmap(path, np.uint8, "r"), content):
        logger.warning("memory is not shared with other processes: %s has another content", path)
        os.close(file)
        return None
    _files[digest] = file
    return file


def _own_folder() -> Path:
    """Return the folder, which no other user can write."""
    folder = Path(tempfile.gettempdir()) / f"elmokit-shared-{os.getuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(f"{folder} is no folder of this user alone")
    return folder


def _delete_unused(folder: Path) -> None:
    import fcntl

    for path in folder.glob("*.block"):
        file = os.open(path, os.O_RDONLY)
        with suppress(OSError):  # somebody maps it
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
        os.close(file)


def _hold(file: int) -> None:
    import fcntl

    fcntl.flock(file, fcntl.LOCK_SH)


def _map_over(address: int, length: int, file: int) -> None:
    library: Any = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *([ctypes.c_int] * 3), ctypes.c_long]
    flags = _MAP_PRIVATE | _MAP_FIXED
    found = library.mmap(address, length, mmap.PROT_READ | mmap.PROT_WRITE, flags, file, 0)
    if found != address:
        raise OSError(ctypes.get_errno(), "memory cannot be mapped")
