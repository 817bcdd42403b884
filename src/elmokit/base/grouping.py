"""Group a stream of items, or draw a sample of them."""

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from queue import Empty, Queue
from typing import Any, TypeVar

Given = TypeVar("Given")
Item = TypeVar("Item")

_AHEAD = 1000  # items that are taken before they are asked for


def group_until(
    items: Iterable[Item], size: Callable[[Item], int], limit: int, *, first: int | None = None
) -> Iterator[list[Item]]:
    """Group items in order; a group ends with the item that brings its total size to `limit`.

    No group is empty, and only the last one may be smaller than `limit`. With `first`, the first group ends
    at that size already, and each further one at twice the size of the one before, up to `limit`: the caller
    can begin before many items have been taken.

    Example:
        >>> list(group_until(["a", "bcd", "e", "f"], len, 3))
        [['a', 'bcd'], ['e', 'f']]
        >>> [len(group) for group in group_until("abcdefghijkl", len, 4, first=1)]
        [1, 2, 4, 4, 1]
    """
    group: list[Item] = []
    total, enough = 0, limit if first is None else min(first, limit)
    for item in items:
        group.append(item)
        total += size(item)
        if total >= enough:
            yield group
            group, total, enough = [], 0, min(2 * enough, limit)
    if group:
        yield group


def random_sample(items: Iterable[Item], most: int) -> tuple[list[Item], int]:
    """Return at most so many items of a stream, chosen at random but always the same, and the number of all.

    Example:
        >>> sample, count = random_sample(range(100), 3)
        >>> len(sample), count
        (3, 100)
    """
    draw, sample, count = random.Random(0), list[Item](), 0
    for count, item in enumerate(items, start=1):
        if len(sample) < most:
            sample.append(item)
        elif (place := draw.randrange(count)) < most:
            sample[place] = item
    return sample, count


def group_arriving(
    given: Iterable[Given],
    prepare: Callable[[Given], Item],
    size: Callable[[Item], int],
    limit: int,
    *,
    latency: float,
    first: int | None = None,
) -> Iterator[list[Item]]:
    """Group items as they arrive: a group ends at `limit`, or when it has waited for `latency` seconds.

    While items are waiting they share a group, whatever the latency; with latency 0 a group ends as soon as
    none is waiting. A thread takes the items, since taking the next one may block; they are prepared in the
    caller's thread. Items before an error of `given` are grouped before the error is raised.

    Args:
        given: Where the items come from: lines of a pipe, say.
        prepare: Makes an item of what was given.
        size: The size of an item.
        limit: The size at which a group is full.
        latency: The longest that an item waits for others.
        first: The size at which the first group is full already, if that is smaller; it doubles with each
            group that is full, as in `group_until`.

    Example:
        >>> groups = group_arriving(["1", "2", "3"], int, lambda item: 1, 2, latency=10)
        >>> list(groups)
        [[1, 2], [3]]
    """
    arrived: Queue[_Arrival] = Queue(_AHEAD)
    unwanted = threading.Event()
    threading.Thread(target=_take, args=(given, arrived, unwanted), daemon=True).start()
    ended = False
    enough = limit if first is None else min(first, limit)
    try:
        while not ended:
            group: list[Item] = []
            total, deadline = 0, None
            while total < enough and (arrival := _next(arrived, deadline)):
                ended = arrival.last
                if ended:
                    break
                deadline = deadline or time.monotonic() + latency
                group.append(prepare(arrival.value))
                total += size(group[-1])
            if group:
                yield group
            enough = min(2 * enough, limit) if total >= enough else enough
        if arrival is not None and arrival.value is not None:
            raise arrival.value
    finally:
        unwanted.set()
        while not arrived.empty():  # the thread may wait for room
            arrived.get_nowait()


@dataclass(frozen=True)
class _Arrival:
    """An item; or, as the last one, None or the error that ended the stream."""

    value: Any
    last: bool = False


def _next(arrived: "Queue[_Arrival]", deadline: float | None) -> _Arrival | None:
    """Return what arrives, or None if nothing has until the deadline."""
    try:
        return arrived.get(timeout=None if deadline is None else max(0.0, deadline - time.monotonic()))
    except Empty:
        return None


def _take(given: Iterable[Any], arrived: "Queue[_Arrival]", unwanted: threading.Event) -> None:
    """Put all items into the queue, until the end or until nobody wants them any more."""
    error = None
    try:
        for item in given:
            arrived.put(_Arrival(item))
            if unwanted.is_set():
                return
    except Exception as raised:  # noqa: BLE001 (raised again by the thread that reads)
        error = raised
    arrived.put(_Arrival(error, last=True))
