"""Independent pieces of work side by side, each on one thread.

Torch's own threads share one operation at a time and wait for each other at its end by spinning. An LSTM is
thousands of short operations: on a busy machine the waiting can make two threads ten times slower than one.
Large pieces of work (one batch in one direction) need not wait for each other until they are done.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")

_this_thread = threading.local()


@contextmanager
def whole_pieces() -> Iterator[None]:
    """Run torch single-threaded inside this block; `side_by_side` still uses all threads."""
    if hasattr(_this_thread, "available"):  # inside another such block
        yield
        return
    before = torch.get_num_threads()
    _this_thread.available = before
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        del _this_thread.available


def num_threads() -> int:
    """Return how many threads `side_by_side` uses."""
    available: int = getattr(_this_thread, "available", torch.get_num_threads())
    return available


def side_by_side(
    function: Callable[[Item], Result], items: Sequence[Item], device: torch.device
) -> list[Result]:
    """Map a function over items, without gradients; on the CPU with as many threads as torch has."""

    def run(item: Item) -> Result:
        with torch.inference_mode():
            return function(item)

    threads = num_threads()
    if device.type != "cpu" or threads == 1 or (len(items) == 1 and torch.get_num_threads() == 1):
        return [run(item) for item in items]
    return list(_pool(threads, os.getpid()).map(run, items))


@lru_cache(maxsize=2)
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """Start the threads of this process (a forked one does not inherit its parent's)."""
    before = torch.get_num_threads()
    pool = ThreadPoolExecutor(threads, "elmokit", initializer=_limit_threads, initargs=(1,))
    all_there = threading.Barrier(threads)
    list(pool.map(lambda _: all_there.wait(), range(threads)))
    torch.set_num_threads(before)  # setting it in a thread has also set it for later threads
    return pool


def _limit_threads(number: int) -> None:
    torch.get_num_threads()  # when first asked, a thread takes over the common number: change it afterwards
    torch.set_num_threads(number)


class PairOfThreads:
    """Two threads, each with half of torch's threads. On other devices than the CPU they take turns."""

    def __init__(self, device: torch.device) -> None:
        self._pool = None
        if device.type == "cpu":
            share = max(1, torch.get_num_threads() // 2)
            self._pool = ThreadPoolExecutor(2, "pretrain", initializer=_begin_thread, initargs=(share,))

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Map a function over two items."""
        return list(map(function, items) if self._pool is None else self._pool.map(function, items))


def _begin_thread(threads: int) -> None:
    _limit_threads(threads)
    # Saturated gates make numbers too small for the processor's fast path: training would slow to half speed.
    torch.set_flush_denormal(True)
