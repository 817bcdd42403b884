"""How training uses memory and numbers: freed memory is used again, tiny numbers are flushed to zero."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """The same in this thread, for a while: others may need such numbers."""
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def keep_freed_memory() -> None:
    """Let glibc keep large blocks that are freed, for the next step.

    By default it gives each of them back to the system, and a step then spends its time on having pages
    cleared again. One arena for all threads, because others cannot grow beyond 64 MB. Elsewhere than on glibc
    nothing is done.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    trim_threshold, top_pad, mmap_max, arena_max = -1, -2, -4, -8
    mallopt(arena_max, 1)
    mallopt(mmap_max, 0)
    mallopt(trim_threshold, 2**31 - 1)
    mallopt(top_pad, 256 * 2**20)
