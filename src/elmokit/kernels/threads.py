"""Independent pieces of work side by side, each on one thread.

Torch's own threads share one operation at a time and wait for each other at its end by spinning. An LSTM is
thousands of short operations: on a busy machine the waiting can make two threads ten times slower than one.
Large pieces of work (one batch in one direction) need not wait for each other until they are done.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
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
    """Map a function over items, without gradients; on the CPU with as many threads as torch has.

    The calling thread works too: for a few short items that saves half of the waiting.
    """
    numbers = iter(range(len(items)))  # which of the items is next
    done: dict[int, Result] = {}

    def work() -> None:
        with torch.inference_mode():
            for number in numbers:
                done[number] = function(items[number])

    if device.type != "cpu":
        work()
    else:
        with whole_pieces():
            _work_in_threads(work, min(num_threads(), len(items)))
    return [done[number] for number in range(len(items))]


def _work_in_threads(work: Callable[[], None], threads: int) -> None:
    """Call `work` in this thread and, at the same time, in `threads - 1` others."""
    futures = []
    if threads > 1:
        pool = _pool(num_threads() - 1, os.getpid())
        futures = [pool.submit(work) for _ in range(threads - 1)]
    try:
        with _alone() if futures else nullcontext():
            work()
    finally:
        wait(futures)
    for future in futures:
        future.result()  # raises what was raised there


@contextmanager
def _alone() -> Iterator[None]:
    """Let `side_by_side` use this thread alone: the others have work already."""
    before, _this_thread.available = _this_thread.available, 1
    try:
        yield
    finally:
        _this_thread.available = before


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
            # A forked process makes torch's autograd engine anew when it is first needed, and crashes if two
            # threads need it at the same moment: so need it here.
            with torch.enable_grad():
                torch.ones((), requires_grad=True).exp()

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Map a function over two items."""
        return list(map(function, items) if self._pool is None else self._pool.map(function, items))


def _begin_thread(threads: int) -> None:
    _limit_threads(threads)
    # Saturated gates make numbers too small for the processor's fast path: training would slow to half speed.
    torch.set_flush_denormal(True)
