"""Work spread over processes that share the parent's memory, its results in order."""

import multiprocessing
import signal
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

import torch

from elmokit.errors import ConfigError, ElmoError

Item = TypeVar("Item")
Result = TypeVar("Result")

# What the forked processes are to do. They inherit it, weights and all, so that nothing is copied or pickled.
_function: Callable[[Any], Any] | None = None


def ordered_map(
    function: Callable[[Item], Result], items: Iterable[Item], *, workers: int
) -> Iterator[Result]:
    """`function(item)` for each item, in order, computed by `workers` forked processes of one thread each.

    Only a few items are under way at a time. What `function` refers to is shared with the parent as it is
    when the first item is taken.

    Raises:
        ConfigError: the system cannot fork.
        ElmoError: a process died.
    """
    global _function
    if "fork" not in multiprocessing.get_all_start_methods():
        raise ConfigError("workers need an operating system that can fork; leave them out")
    _function = function
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("fork"), initializer=_begin)
    pending: deque[Future[Result]] = deque()
    try:
        for item in items:
            with warnings.catch_warnings():  # of forking beside threads: the children use none of them
                warnings.filterwarnings("ignore", "This process .* is multi-threaded")
                pending.append(pool.submit(_call, item))
            if len(pending) >= 2 * workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    except BrokenProcessPool as error:
        raise ElmoError("a worker process died, perhaps for want of memory; use fewer workers") from error
    finally:
        pool.shutdown(cancel_futures=True)
        _function = None


def _begin() -> None:
    # The parent's threads do not survive a fork; with one thread a process needs none of them.
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle


def _call(item: Any) -> Any:  # noqa: ANN401 (whatever the function takes and gives)
    assert _function is not None
    return _function(item)
