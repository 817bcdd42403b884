"""Group a stream of items."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def group_until(items: Iterable[Item], size: Callable[[Item], int], limit: int) -> Iterator[list[Item]]:
    """Group items in order; a group ends with the item that brings its total size to `limit`.

    No group is empty, and only the last one may be smaller than `limit`.

    Example:
        >>> list(group_until(["a", "bcd", "e", "f"], len, 3))
        [['a', 'bcd'], ['e', 'f']]
    """
    group: list[Item] = []
    total = 0
    for item in items:
        group.append(item)
        total += size(item)
        if total >= limit:
            yield group
            group, total = [], 0
    if group:
        yield group
