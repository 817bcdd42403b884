"""Search indexes of strangers: what would let the library of neighbours read and write anywhere in memory."""

import struct

import numpy as np
import pytest

from elmokit import DataError, Index
from elmokit.embed import Embedder
from elmokit.search import segments
from elmokit.search.graph_check import check_graph
from elmokit.search.index_arrays import file_record
from elmokit.search.manifest import Manifest, SegmentEntry
from tests.tiny import tiny_bundle

COUNT, DIM = 300, 24
HEAD = 8 + COUNT * DIM  # its place in the file, after the vectors
NODES = HEAD + 64  # their number, neighbours on upper levels and at the base, top level, start
LEVELS = NODES + 40
LISTS = LEVELS + 2 * COUNT


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    usearch = segments.usearch()
    numbers = np.random.default_rng(0).integers(-127, 127, (COUNT, DIM)).astype(np.int8)
    graph = usearch.Index(ndim=DIM, metric="cos", dtype="i8")
    graph.add(np.arange(COUNT), numbers, threads=1)
    path = tmp_path_factory.mktemp("graph") / "graph.usearch"
    graph.save(str(path))
    check_graph(path, COUNT, DIM)
    return path.read_bytes()


def node_above(content):
    """Return the place of the list above the base of the first node that has one."""
    levels = np.frombuffer(content, "<i2", COUNT, LEVELS).astype(int)
    upper, base = struct.unpack_from("<QQ", content, NODES + 8)
    sizes = 14 + 4 * base + levels * (4 + 4 * upper)
    first = int(np.flatnonzero(levels)[0])
    return LISTS + int(sizes[:first].sum()) + 14 + 4 * base


@pytest.mark.parametrize(
    ("kind", "place", "value", "message"),
    [
        ("<I", LISTS + 14, COUNT, "lists of neighbours are damaged"),
        ("<I", LISTS + 10, 1 << 30, "lists of neighbours are damaged"),
        ("<I", "above", 1 << 30, "lists of neighbours are damaged"),
        ("<I", "above + 4", 0, "lists of neighbours are damaged"),  # a node of the base only
        ("<h", LEVELS, -1, "levels are damaged"),
        ("<h", LEVELS, 30_000, "levels are damaged"),
        ("<Q", NODES, COUNT + 1, "not a graph of 300 vectors of 24 numbers"),
        ("<Q", NODES + 8, 1 << 60, "sizes are damaged"),
        ("<Q", NODES + 16, 33, "nodes do not fill it"),
        ("<Q", NODES + 24, 1 << 60, "levels are damaged"),
        ("<Q", NODES + 32, COUNT, "sizes are damaged"),
        ("<B", HEAD + 14, 1, "not a graph of 300 vectors of 24 numbers"),  # another type of number
        ("<I", 4, DIM - 1, "not a graph of 300 vectors of 24 numbers"),
    ],
)
def test_graphs_that_lead_out_of_themselves(tmp_path, whole, kind, place, value, message):
    above = node_above(whole)
    content = bytearray(whole)
    places = {"above": above, "above + 4": above + 4}
    levels = np.frombuffer(whole, "<i2", COUNT, LEVELS)
    value = int(np.flatnonzero(levels == 0)[0]) if place == "above + 4" else value
    struct.pack_into(kind, content, places.get(place, place), value)
    (tmp_path / "graph").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        check_graph(tmp_path / "graph", COUNT, DIM)
    (tmp_path / "graph").write_bytes(whole[: len(whole) // 9])
    with pytest.raises(ValueError, match="too short"):
        check_graph(tmp_path / "graph", COUNT, DIM)


def test_a_forged_index_is_refused(tmp_path, monkeypatch):
    """Its checksums fit, as those of somebody who means harm do."""
    monkeypatch.setattr(segments, "GRAPH_FROM", 2)
    monkeypatch.setattr(segments, "_FEW", 2)
    embedder, texts = Embedder(tiny_bundle()), [f"the cat {number}" for number in range(9)]
    index = Index.build(texts, tmp_path / "index", model=embedder, language="en")
    assert index.search("the cat 3", by=["dense"])
    graph = next((tmp_path / "index").glob("*/graph.usearch"))
    content = bytearray(graph.read_bytes())
    lists = content.index(b"usearch") + 64 + 40 + 2 * len(texts)
    content[lists + 10 : lists + 14] = b"\xff" * 4  # the length of the first list
    graph.write_bytes(content)
    manifest = Manifest.read(tmp_path / "index")
    (entry,) = manifest.entries
    forged = SegmentEntry(entry.name, entry.files | {graph.name: file_record(graph)}, {})
    Manifest(manifest.settings, (forged,), manifest.next_number).write(tmp_path / "index")
    with pytest.raises(DataError, match=r"graph.usearch cannot be read \(its .* build the index again"):
        Index.open(tmp_path / "index", model=embedder).search("the cat 3", by=["dense"])
