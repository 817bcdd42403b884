"""Work spread over processes that share the parent's memory, its results in order."""

import multiprocessing
import os
import signal
import threading
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.synchronize import Event
from typing import Any, TypeVar

from elmokit.errors import ConfigError, ElmoError

Item = TypeVar("Item")
Result = TypeVar("Result")

# What the forked processes are to do. They inherit it, weights and all, so that nothing is copied or pickled.
_function: Callable[[Any], Any] | None = None
# Set when the results are not wanted any more: some items wait where the executor cannot cancel them.
_given_up: Event | None = None


def can_fork() -> bool:
    """Tell whether `ordered_map` can work here: Windows has no fork."""
    return "fork" in multiprocessing.get_all_start_methods()


def ordered_map(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    workers: int,
    begin: Callable[[], object] | None = None,
) -> Generator[Result, None, None]:
    """`function(item)` for each item, in order, computed by `workers` forked processes.

    Only a few items are under way at a time. What `function` refers to is shared with the parent as it is
    when the first item is taken.

    Args:
        function: What to do.
        items: To what.
        workers: The number of processes.
        begin: What each process does first, such as to limit its threads: those of the parent do not survive
            a fork.

    Raises:
        ConfigError: the system cannot fork.
        ElmoError: a process died.
    """
    global _function, _given_up
    if not can_fork():
        raise ConfigError("workers need an operating system that can fork; leave them out")
    context = multiprocessing.get_context("fork")
    _function, _given_up = function, context.Event()
    pool = ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(begin,))
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
        _given_up.set()
        pool.shutdown(cancel_futures=True)
        _function = _given_up = None


def belong_to_parent() -> None:
    """In a child process: leave Ctrl-C to the parent, and end when it ends, however that happens."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _begin(begin: Callable[[], object] | None) -> None:
    belong_to_parent()
    if begin is not None:
        begin()


def _end_with_parent() -> None:
    """Without this a process whose parent was killed would go on, or wait for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _call(item: Any) -> Any:  # noqa: ANN401 (whatever the function takes and gives)
    assert _function is not None
    assert _given_up is not None
    return None if _given_up.is_set() else _function(item)
