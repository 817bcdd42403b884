"""How training uses the machine: two threads for the two directions, and memory that is used again."""

import ctypes
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


class PairOfThreads:
    """Two threads, each with half of torch's threads. On other devices than the CPU work is done in turn."""

    def __init__(self, device: torch.device) -> None:
        self._pool = None
        if device.type == "cpu":
            share = max(1, torch.get_num_threads() // 2)
            self._pool = ThreadPoolExecutor(2, "pretrain", initializer=_begin_thread, initargs=(share,))

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """`function` of each item, in order."""
        return list(map(function, items) if self._pool is None else self._pool.map(function, items))


def _begin_thread(threads: int) -> None:
    torch.get_num_threads()  # at the first question a thread takes over the common number; change it then
    torch.set_num_threads(threads)
    # Saturated gates make numbers too small for the processor's fast path: training slows to less than half.
    torch.set_flush_denormal(True)


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
