"""Compile and control inject.c, which lets a chosen system call fail or kills the process there."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("inject.c")
# Action and error number of each fault; the numbers of the actions are those of inject.c.
FAULTS = {
    "error": (1, 5),  # EIO, once
    "full": (2, 28),  # ENOSPC, from then on, for everything that takes space
    "read-only": (3, 30),  # EROFS, from then on
    "kill": (4, 0),  # before the call
    "tear": (5, 0),  # after half of a write
}
PAUSE = "pause"  # the process stops until it gets SIGCONT


def compile_library(folder: Path) -> Path | None:
    """Return the compiled library; None where there is no compiler or no LD_PRELOAD."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or os.uname().sysname != "Linux":
        return None
    library = folder / "inject.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-U_FORTIFY_SOURCE", "-o", library, SOURCE, "-ldl"]
    return library if subprocess.run(command, check=False).returncode == 0 else None


def preloaded(library: Path) -> dict[str, str]:
    """Return the environment of a process in which faults can be injected."""
    one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # a fork copies only one thread
    return {**os.environ, **one_thread, "LD_PRELOAD": str(library)}


def arm(folder: Path, fault: str | None = None, nth: int = 0, trace: int = -1) -> None:
    """Let something happen at the `nth` writing call below a folder; by default, only count them."""
    action, error = {None: (0, 0), PAUSE: (6, 0), **FAULTS}[fault]
    library = ctypes.CDLL(None)
    library.fault_arm(os.fsencode(folder), ctypes.c_long(nth), action, error, trace)


def writes() -> list[int]:
    """Return which of the calls since `arm` were writes, half of which can be done."""
    marks = ctypes.CDLL(None).fault_writes
    marks.restype = ctypes.c_void_p
    found = ctypes.string_at(marks(), count() + 1)
    return [number for number, is_write in enumerate(found) if number and is_write]


def count() -> int:
    """Return the number of writing calls since `arm`."""
    calls = ctypes.CDLL(None).fault_calls
    calls.restype = ctypes.c_long
    return int(calls())
