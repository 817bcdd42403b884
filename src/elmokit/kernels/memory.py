"""How training uses memory and numbers: freed memory is kept for reuse, tiny numbers become zero."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

# Parameters of glibc's mallopt, by name.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -2, -3, -4, -8
_MB = 2**20


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Let this thread treat numbers too small for the processor's fast path as zero, inside this block."""
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


@contextmanager
def keep_freed_memory() -> Iterator[None]:
    """Let glibc keep large freed blocks for the next training step, inside this block.

    By default it returns each of them to the system, and a step then spends its time on having pages cleared
    again. All threads share one arena, because others cannot grow beyond 64 MB.

    The settings cannot be read, so they cannot be put back as they were. On leaving, the kept memory is
    released and the settings become those that glibc itself arrives at in a process that has freed large
    blocks. With another C library nothing is changed.
    """
    libc: Any = ctypes.CDLL(None) if sys.platform.startswith("linux") else None
    if not hasattr(libc, "mallopt"):
        yield
        return
    _set(libc, {_ARENA_MAX: 1, _MMAP_MAX: 0, _TRIM_THRESHOLD: 2**31 - 1, _TOP_PAD: 256 * _MB})
    try:
        yield
    finally:
        # The first three are the defaults of mallopt(3). The two thresholds are the highest that glibc itself
        # would set: it adjusts them to the program until one of these settings is changed by hand.
        _set(libc, {_ARENA_MAX: 0, _MMAP_MAX: 65_536, _TOP_PAD: 128 * 1024})
        _set(libc, {_MMAP_THRESHOLD: 32 * _MB, _TRIM_THRESHOLD: 64 * _MB})
        libc.malloc_trim(0)


def _set(libc: Any, settings: dict[int, int]) -> None:  # noqa: ANN401 (untyped)
    for name, value in settings.items():
        libc.mallopt(name, value)


def peak_memory() -> float:
    """Return the peak memory of this process in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count what the parent had when this process was made
        lines = dict(line.split(":", 1) for line in status.read_text(encoding="utf-8").splitlines())
        return 1024 * float(lines["VmHWM"].split()[0])
    if sys.platform == "win32":
        counters = _MemoryCounters(size=ctypes.sizeof(_MemoryCounters))
        this = ctypes.c_void_p(-1)  # what GetCurrentProcess returns
        if not ctypes.windll.kernel32.K32GetProcessMemoryInfo(this, ctypes.byref(counters), counters.size):
            raise ctypes.WinError()
        return float(counters.peak_working_set)
    import resource  # which Windows does not have

    unit = 1 if sys.platform == "darwin" else 1024
    return float(unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


class _MemoryCounters(ctypes.Structure):
    """PROCESS_MEMORY_COUNTERS of the Windows API."""

    _fields_ = [
        ("size", ctypes.c_uint32),
        ("page_faults", ctypes.c_uint32),
        ("peak_working_set", ctypes.c_size_t),
        ("others", ctypes.c_size_t * 7),
    ]
