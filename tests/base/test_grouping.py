import threading
from itertools import count, islice
from queue import Queue

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.base import group_arriving, group_until


@given(st.lists(st.integers(0, 9)), st.integers(1, 20))
def test_groups(items, limit):
    groups = list(group_until(items, lambda item: item, limit))
    assert [item for group in groups for item in group] == items
    assert all(groups)
    for group in groups[:-1]:
        assert sum(group) >= limit > sum(group[:-1])


def test_an_endless_stream():
    assert list(islice(group_until(count(), lambda _: 1, 3), 2)) == [[0, 1, 2], [3, 4, 5]]


def test_the_first_groups_are_small():
    groups = group_until(count(), lambda _: 1, 5, first=1)
    assert [len(group) for group in islice(groups, 5)] == [1, 2, 4, 5, 5]


def arriving(items, limit=100, latency=0.0):
    return group_arriving(items, lambda item: 10 * item, lambda _: 1, limit, latency=latency)


@pytest.mark.parametrize("latency", [0.0, 0.001])
def test_an_item_is_answered_before_the_next_one_comes(latency):
    answers = Queue()

    def conversation():
        for number in range(5):
            yield number
            assert answers.get(timeout=60) == 10 * number  # only then comes the next

    for group in arriving(conversation(), latency=latency):
        for item in group:
            answers.put(item)


def test_items_that_arrive_in_time_share_a_group():
    assert list(arriving(range(7), latency=60)) == [[0, 10, 20, 30, 40, 50, 60]]
    assert list(arriving(range(7), limit=3, latency=60)) == [[0, 10, 20], [30, 40, 50], [60]]
    assert [item for group in arriving(range(3000)) for item in group] == list(range(0, 30000, 10))
    assert list(arriving([])) == []


def test_an_error_comes_after_what_came_before_it():
    def broken():
        yield 1
        raise OSError("the line is cut")

    groups = arriving(broken(), latency=60)
    assert next(groups) == [10]
    with pytest.raises(OSError, match="the line is cut"):
        next(groups)


def test_nothing_more_is_taken_once_nobody_reads():
    before = set(threading.enumerate())
    groups = arriving(count(), limit=1)
    assert next(groups) == [0]
    groups.close()
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=60)
        assert not thread.is_alive()


def test_the_first_answers_do_not_wait_for_a_full_group():
    """Items that are all there at once come in growing groups."""
    groups = group_arriving(range(20), int, lambda _: 1, 8, latency=60, first=1)
    assert [len(group) for group in groups] == [1, 2, 4, 8, 5]
