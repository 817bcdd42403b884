"""Distribute work over forked processes, which share the parent's memory; results come in order."""

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

# The job of the forked processes. They inherit it with all weights: nothing is copied or pickled.
_function: Callable[[Any], Any] | None = None
# Set when the results are no longer wanted, for items that the executor cannot cancel.
_given_up: Event | None = None


def can_fork() -> bool:
    """Return whether `ordered_map` works on this system; Windows has no fork."""
    return "fork" in multiprocessing.get_all_start_methods()


def ordered_map(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    workers: int,
    begin: Callable[[], object] | None = None,
) -> Generator[Result, None, None]:
    """Yield `function(item)` for each item, in order, computed by `workers` forked processes.

    Only a few items are taken ahead. The processes share the objects that `function` refers to, as they are
    when the first item is taken.

    Args:
        function: What to compute.
        items: Its arguments.
        workers: The number of processes.
        begin: Called first in each process, for example to limit its threads.

    Raises:
        ConfigError: the system cannot fork.
        ElmoError: a process died.
    """
    global _function, _given_up
    if not can_fork():
        raise ConfigError("workers need an operating system that can fork; leave out workers")
    context = multiprocessing.get_context("fork")
    _function, _given_up = function, context.Event()
    pool = ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(begin,))
    pending: deque[Future[Result]] = deque()
    try:
        for item in items:
            with warnings.catch_warnings():  # about a fork beside threads, which the children do not use
                warnings.filterwarnings("ignore", "This process .* is multi-threaded")
                pending.append(pool.submit(_call, item))
            if len(pending) >= 2 * workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    except BrokenProcessPool as error:
        raise ElmoError("a worker process died, perhaps because memory ran out; use fewer workers") from error
    finally:
        _given_up.set()
        pool.shutdown(cancel_futures=True)
        _function = _given_up = None


def belong_to_parent() -> None:
    """Make a child process ignore Ctrl-C and end with its parent, even if that is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _begin(begin: Callable[[], object] | None) -> None:
    belong_to_parent()
    if begin is not None:
        begin()


def _end_with_parent() -> None:
    """Exit when the parent has ended; otherwise a child would wait for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _call(item: Any) -> Any:  # noqa: ANN401 (whatever the function takes and gives)
    assert _function is not None
    assert _given_up is not None
    return None if _given_up.is_set() else _function(item)
