"""Check the graph of near neighbours in a file of usearch, a library in C++ that trusts what it reads.

The file holds the vectors, a head, the level of each node, and for each node its key and its lists of
neighbours, one for the base and one for each level above it. A neighbour that is no node, or a list that is
longer than its place, would let usearch read and write anywhere in memory.
"""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_SHAPE = struct.Struct("<II")  # of the vectors: their number, and bytes of each
_HEAD = struct.Struct("<7s6x4sQQQ?22x")  # name, kinds, vectors present, deleted, dimensions, several a key
_GRAPH = struct.Struct(
    "<QQQQQ"
)  # nodes, neighbours of a node on upper levels and at the base, top level, start
_KINDS = b"c\x17\x0e\x0f"  # cosine, int8, keys of 64 bits, numbers of nodes of 32 bits
_NODE = 10  # bytes of a node before its lists: its key and level
_MOST_NEIGHBOURS, _MOST_LEVELS = 1024, 64
_AT_ONCE = 16_384

Numbers = npt.NDArray[np.int64]


def check_graph(path: Path, count: int, dim: int) -> None:
    """Raise a ValueError unless a file holds a graph of so many vectors, and nothing leads out of it."""
    data = np.memmap(path, np.uint8, "r")
    at = _SHAPE.size + count * dim
    ends = at + _HEAD.size + _GRAPH.size + 2 * count
    if len(data) < ends:
        raise ValueError("it is too short")
    shape = _SHAPE.unpack(data[: _SHAPE.size].tobytes())
    name, kinds, present, deleted, dimensions, several = _HEAD.unpack(data[at : at + _HEAD.size].tobytes())
    head = data[at + _HEAD.size : ends - 2 * count]
    nodes, upper, base, top, start = _GRAPH.unpack(head.tobytes())
    expected = (count, dim), b"usearch", _KINDS, count, 0, dim, False, count
    if (shape, name, kinds, present, deleted, dimensions, several, nodes) != expected:
        raise ValueError(f"it is not a graph of {count:,} vectors of {dim} numbers")
    if not (0 < upper <= base <= _MOST_NEIGHBOURS) or start >= count:
        raise ValueError("its sizes are damaged")
    levels = data[ends - 2 * count : ends].view("<i2").astype(np.int64)
    if (
        levels.min() < 0
        or levels.max() > _MOST_LEVELS
        or levels[start] != levels.max()
        or levels.max() != top
    ):
        raise ValueError("its levels are damaged")
    sizes = _NODE + 4 * (1 + base) + levels * 4 * (1 + upper)
    places = ends + np.cumsum(sizes) - sizes
    if ends + int(sizes.sum()) != len(data):
        raise ValueError("its nodes do not fill it")
    _check_lists(data, places + _NODE, base, levels, 0)
    for level in range(1, top + 1):
        above = places[levels >= level] + _NODE + 4 * (1 + base) + (level - 1) * 4 * (1 + upper)
        _check_lists(data, above, upper, levels, level)


def _check_lists(data: npt.NDArray[Any], places: Numbers, most: int, levels: Numbers, level: int) -> None:
    """Check the lists at these places: their lengths, and that their nodes are there, on this level."""
    row = np.arange(4 * (1 + most))
    for first in range(0, len(places), _AT_ONCE):
        block = data[places[first : first + _AT_ONCE, None] + row].view("<u4")
        length, neighbours = block[:, :1], block[:, 1:]
        used = neighbours[np.arange(most) < length]
        if length.max() > most or (used >= len(levels)).any() or (levels[used] < level).any():
            raise ValueError("its lists of neighbours are damaged")
