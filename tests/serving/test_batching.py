"""Requests share batches, get their own results, and cannot hold each other up."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.serving.batching import Backlog, Batcher, QueueFull


class Machine:
    """Doubles numbers, records batches, and stops where it is told to."""

    def __init__(self, *, budget=10, capacity=1000, wait=0.0, bad=()):
        self.batches, self.bad, self.free = [], bad, Event()
        self.free.set()
        self.thread = ThreadPoolExecutor(1)
        self.backlog = Backlog(capacity)
        self.batcher = Batcher(self.run, thread=self.thread, backlog=self.backlog, budget=budget, wait=wait)

    def run(self, items):
        assert self.free.wait(10)
        self.batches.append(items)
        if set(items) & set(self.bad):
            raise ValueError("bad item")
        return [2 * item for item in items]

    def submit(self, items, sizes=None):
        return asyncio.ensure_future(self.batcher.submit(items, sizes or [1] * len(items)))

    async def occupy(self):
        """Keep the thread busy, so that what comes next waits."""
        self.free.clear()
        first = self.submit([-1])
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return first


def test_requests_that_wait_share_a_batch():
    async def main():
        machine = Machine()
        first = await machine.occupy()
        waiting = [machine.submit([n, 10 * n]) for n in (1, 2, 3)]
        await asyncio.sleep(0)
        machine.free.set()
        assert await asyncio.gather(first, *waiting) == [[-2], [2, 20], [4, 40], [6, 60]]
        assert machine.batches == [[-1], [1, 10, 2, 20, 3, 30]]

    asyncio.run(main())


def test_a_batch_keeps_to_its_budget_but_takes_one_item_at_least():
    async def main():
        machine = Machine(budget=10)
        first = await machine.occupy()
        waiting = [machine.submit([n], [size]) for n, size in ((1, 6), (2, 6), (3, 50), (4, 4))]
        await asyncio.sleep(0)
        machine.free.set()
        await asyncio.gather(first, *waiting)
        assert machine.batches == [[-1], [1], [2], [3], [4]]

    asyncio.run(main())


def test_a_large_request_lets_small_ones_pass():
    async def main():
        machine = Machine(budget=8)
        first = await machine.occupy()
        large = machine.submit(list(range(100, 200)))
        small = machine.submit([1])
        await asyncio.sleep(0)
        machine.free.set()
        await small
        assert await large == list(range(200, 400, 2))
        assert 1 in machine.batches[1]
        assert 199 in machine.batches[-1]
        await first

    asyncio.run(main())


def test_a_client_that_goes_away_costs_nothing_more():
    async def main():
        machine = Machine()
        first = await machine.occupy()
        gone, stays = machine.submit([7]), machine.submit([8])
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        machine.free.set()
        assert await stays == [16]
        await first
        assert machine.batches == [[-1], [8]]
        assert (machine.backlog.tokens, machine.backlog.requests) == (0, 0)

    asyncio.run(main())


def test_only_the_request_at_fault_fails():
    async def main():
        machine = Machine(bad=[2])
        first = await machine.occupy()
        waiting = [machine.submit([n]) for n in (1, 2, 3)]
        await asyncio.sleep(0)
        machine.free.set()
        one, two, three = await asyncio.gather(*waiting, return_exceptions=True)
        assert (one, three) == ([2], [6])
        assert str(two) == "bad item"
        await first

    asyncio.run(main())


def test_a_full_queue_says_when_to_come_back():
    async def main():
        machine = Machine(capacity=5)
        first = await machine.occupy()
        waiting = machine.submit([1], [4])
        await asyncio.sleep(0)
        with pytest.raises(QueueFull, match="try again in 1 s") as refused:
            await machine.submit([2], [1])
        assert refused.value.retry_after == 1
        machine.free.set()
        await asyncio.gather(first, waiting)
        assert await machine.submit([3], [50]) == [6]  # larger than the queue, but alone

    asyncio.run(main())


def test_a_lonely_request_waits_for_company():
    async def main():
        machine = Machine(wait=0.05)
        first = machine.submit([1])
        await asyncio.sleep(0)
        second = machine.submit([2])
        await asyncio.gather(first, second)
        assert machine.batches == [[1, 2]]

    asyncio.run(main())


@given(
    requests=st.lists(st.lists(st.tuples(st.integers(0, 99), st.integers(1, 12)), max_size=9), max_size=12),
    budget=st.integers(1, 20),
)
def test_everybody_gets_their_own_results(requests, budget):
    async def main():
        machine = Machine(budget=budget, capacity=10**6)
        first = await machine.occupy()
        waiting = [machine.submit([i for i, _ in one], [s for _, s in one]) for one in requests]
        await asyncio.sleep(0)
        machine.free.set()
        found = await asyncio.gather(first, *waiting)
        assert found[1:] == [[2 * i for i, _ in one] for one in requests]
        assert machine.backlog.tokens == 0
        machine.thread.shutdown()

    asyncio.run(main())
