from itertools import count, islice

from hypothesis import given
from hypothesis import strategies as st

from elmokit.base import group_until


@given(st.lists(st.integers(0, 9)), st.integers(1, 20))
def test_groups(items, limit):
    groups = list(group_until(items, lambda item: item, limit))
    assert [item for group in groups for item in group] == items
    assert all(groups)
    for group in groups[:-1]:
        assert sum(group) >= limit > sum(group[:-1])


def test_an_endless_stream():
    assert list(islice(group_until(count(), lambda _: 1, 3), 2)) == [[0, 1, 2], [3, 4, 5]]
