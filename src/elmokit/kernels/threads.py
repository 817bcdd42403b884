"""Independent pieces of work side by side, each on one thread.

torch's own threads share one operation at a time and wait for each other at its end by spinning. An LSTM is
thousands of short operations: on a busy machine the waiting can make two threads ten times slower than one.
Whole pieces of work (a batch in one direction) wait for nobody until they are done.
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
    """Within it torch has only this thread for what this thread asks; `side_by_side` still uses them all."""
    if hasattr(_this_thread, "available"):  # within another one
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
    """How many threads `side_by_side` uses."""
    available: int = getattr(_this_thread, "available", torch.get_num_threads())
    return available


def side_by_side(
    function: Callable[[Item], Result], items: Sequence[Item], device: torch.device
) -> list[Result]:
    """`function` of each item, in order, without gradients; on the CPU by as many threads as torch has."""

    def run(item: Item) -> Result:
        with torch.inference_mode():
            return function(item)

    threads = num_threads()
    if device.type != "cpu" or threads == 1 or (len(items) == 1 and torch.get_num_threads() == 1):
        return [run(item) for item in items]
    return list(_pool(threads, os.getpid()).map(run, items))


@lru_cache(maxsize=2)
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """The threads of this process (a forked one does not inherit its parent's), each with one for torch."""
    before = torch.get_num_threads()
    pool = ThreadPoolExecutor(threads, "elmokit", initializer=_one_thread_for_torch)
    all_there = threading.Barrier(threads)
    list(pool.map(lambda _: all_there.wait(), range(threads)))
    torch.set_num_threads(before)  # setting it in a thread has also set it for threads yet to come
    return pool


def _one_thread_for_torch() -> None:
    torch.get_num_threads()  # at the first question a thread takes over the common number; change it then
    torch.set_num_threads(1)


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
