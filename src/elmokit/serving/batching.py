"""Requests of many clients join into batches, and the results go back to whom they belong.

A request brings items (texts), each with a size in tokens. Requests wait in a line. When the thread that
computes is free, a batch is taken from the front of the line until the budget of tokens is used up; a large
request gets a share of the batch and goes to the end of the line with the rest, so that small ones pass it.
A request that is alone waits a moment for others.

Requests enter and results are delivered on the event loop. The thread takes its batches from the line by
itself: it need not wait for the event loop, which is sending the last results meanwhile.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeAlias, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_SHARE = 4  # a request gets at most a quarter of a batch while others wait
_WEIGHT_OF_LAST = 0.2  # in the running mean of the speed
_LONGEST_RETRY = 60  # seconds


class QueueFull(Exception):
    """Too much is waiting; `retry_after` says in how many seconds to come back."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"the server has too much to do; try again in {retry_after} s")
        self.retry_after = retry_after


class Backlog:
    """How many tokens wait or are being computed, in all batchers together.

    Args:
        capacity: The most tokens that may wait.
        changed: Called with the requests and tokens whenever they change, for statistics.
    """

    def __init__(
        self, capacity: int, changed: Callable[[int, int], object] = lambda requests, tokens: None
    ) -> None:
        self.capacity = capacity
        self._changed = changed
        self.tokens = 0
        self.requests = 0
        self._speed = 10_000.0  # tokens a second, until it is known

    def enter(self, tokens: int) -> None:
        """Count a request; one that is larger than all that may wait is taken if nothing else waits.

        Raises:
            QueueFull: There is no room.
        """
        if self.tokens and self.tokens + tokens > self.capacity:
            raise QueueFull(min(_LONGEST_RETRY, max(1, math.ceil(self.tokens / self._speed))))
        self.tokens += tokens
        self.requests += 1
        self._changed(self.requests, self.tokens)

    def leave(self, tokens: int) -> None:
        """Take a request out of the count."""
        self.tokens -= tokens
        self.requests -= 1
        self._changed(self.requests, self.tokens)

    def ran(self, tokens: int, seconds: float) -> None:
        """Learn how fast batches are computed."""
        speed = tokens / max(seconds, 1e-6)
        self._speed += _WEIGHT_OF_LAST * (speed - self._speed)


@dataclass(eq=False)
class _Waiting(Generic[Item, Result]):
    """A request in the line: its items, and how far it has come."""

    items: Sequence[Item]
    sizes: Sequence[int]
    done: "asyncio.Future[list[Result]]"
    next: int = 0
    results: dict[int, Result] = field(default_factory=dict)

    def take(self, tokens: int) -> list[int]:
        """Return the numbers of the next items, up to so many tokens, but one at least."""
        first, taken = self.next, 0
        while self.next < len(self.items) and (self.next == first or taken + self.sizes[self.next] <= tokens):
            taken += self.sizes[self.next]
            self.next += 1
        return list(range(first, self.next))

    def deliver(self, number: int, result: Result) -> None:
        self.results[number] = result
        if len(self.results) == len(self.items) and not self.done.done():
            self.done.set_result([self.results[number] for number in range(len(self.items))])

    def fail(self, error: BaseException) -> None:
        if not self.done.done():
            self.done.set_exception(error)


_Batch: TypeAlias = list[tuple[_Waiting[Item, Result], int]]  # requests, and the numbers of their items


class Batcher(Generic[Item, Result]):
    """A line of requests, and the thread that serves it.

    Args:
        run: Computes the results of a batch, in order. A result must not depend on the rest of the batch.
        thread: Where it runs.
        backlog: Counts what waits.
        budget: Tokens of a batch.
        wait: Seconds that a request waits for others.
        observe: Called after each batch with its items and tokens, for statistics.
    """

    def __init__(
        self,
        run: Callable[[list[Item]], Sequence[Result]],
        *,
        thread: Executor,
        backlog: Backlog,
        budget: int,
        wait: float = 0.0,
        observe: Callable[[int, int], object] = lambda items, tokens: None,
    ) -> None:
        self._run, self._thread, self._backlog = run, thread, backlog
        self._budget, self._wait, self._observe = budget, wait, observe
        self._line: deque[_Waiting[Item, Result]] = deque()
        self._at_work = False  # a batch runs, or is about to
        self._lock = Lock()  # of the line and of `_at_work`

    async def submit(self, items: Sequence[Item], sizes: Sequence[int]) -> list[Result]:
        """Return the results of items, each of so many tokens, in order.

        When the task that waits here is cancelled, what has not begun is not computed.

        Raises:
            QueueFull: Too much is waiting.
        """
        if not items:
            return []
        loop = asyncio.get_running_loop()
        tokens = sum(sizes)
        self._backlog.enter(tokens)
        try:
            waiting = _Waiting[Item, Result](items, sizes, loop.create_future())
            with self._lock:
                self._line.append(waiting)
                begins, self._at_work = not self._at_work, True
            if begins and self._wait and tokens < self._budget:
                loop.call_later(self._wait, self._thread.submit, self._serve, loop)
            elif begins:
                self._thread.submit(self._serve, loop)
            return await waiting.done
        finally:
            self._backlog.leave(tokens)

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run a batch, on the thread, and see to it that the next one follows."""
        with self._lock:
            batch = self._take()
            self._at_work = bool(batch)
        if not batch:
            return
        try:
            self._run_batch(batch, loop)
        finally:
            self._thread.submit(self._serve, loop)  # behind what other batchers have for this thread

    def _take(self) -> "_Batch[Item, Result]":
        """Take a batch: pairs of a request and the number of one of its items."""
        batch: _Batch[Item, Result] = []
        room, share = self._budget, max(1, self._budget // _SHARE)
        while self._line and room > 0:
            waiting = self._line[0]
            if waiting.done.done():  # its client has gone
                self._line.popleft()
                continue
            if batch and waiting.sizes[waiting.next] > room:
                break
            self._line.popleft()
            numbers = waiting.take(min(share, room))
            room -= sum(waiting.sizes[number] for number in numbers)
            batch += [(waiting, number) for number in numbers]
            if waiting.next < len(waiting.items):
                self._line.append(waiting)
        return batch

    def _run_batch(self, batch: "_Batch[Item, Result]", loop: asyncio.AbstractEventLoop) -> None:
        items = [waiting.items[number] for waiting, number in batch]
        begun = time.perf_counter()
        try:
            results = self._run(items)
        except Exception as error:  # noqa: BLE001 (it belongs to the client whose item is at fault)
            self._find_fault(batch, error, loop)
        else:
            seconds = time.perf_counter() - begun
            loop.call_soon_threadsafe(self._deliver, batch, results, seconds)

    def _find_fault(
        self, batch: "_Batch[Item, Result]", error: Exception, loop: asyncio.AbstractEventLoop
    ) -> None:
        """Run each request of a failed batch by itself: only the one at fault fails."""
        parts: dict[_Waiting[Item, Result], _Batch[Item, Result]] = {}
        for waiting, number in batch:
            parts.setdefault(waiting, []).append((waiting, number))
        if len(parts) == 1:
            loop.call_soon_threadsafe(batch[0][0].fail, error)
            return
        for part in parts.values():
            self._run_batch(part, loop)

    def _deliver(self, batch: "_Batch[Item, Result]", results: Sequence[Result], seconds: float) -> None:
        """Give results to the requests they belong to, on the event loop."""
        for (waiting, number), result in zip(batch, results, strict=True):
            waiting.deliver(number, result)
        tokens = sum(waiting.sizes[number] for waiting, number in batch)
        self._backlog.ran(tokens, seconds)
        self._observe(len(batch), tokens)
