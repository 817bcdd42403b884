"""The files of a graph hold what the graph has, and nothing is lost."""

import csv
import io
import json
from xml.etree import ElementTree

import pytest

import elmokit
from elmokit.graph import Evidence, GraphEdge, GraphNode, KnowledgeGraph, NodeMention, read_graph


@pytest.fixture
def graph():
    ada = [
        NodeMention("a", 0, 12, "Ada Lovelace"),
        NodeMention("a", 30, 33, "Ada"),
        NodeMention("b", 0, 3, "Ada"),
    ]
    nodes = [GraphNode("n1", "PER", ada), GraphNode("n2", "", [NodeMention("a", 20, 27, 'Rome & "Co";')])]
    said = [Evidence("a", 0, 28, "Ada Lovelace left Rome\x0b.", 0.75), Evidence("b", 0, 9, "Ada left.", 0.9)]
    return KnowledgeGraph(nodes, [GraphEdge("n1", "n2", "left", said)])


def test_a_graph_answers(graph):
    assert graph.nodes[0].names == ["Ada", "Ada Lovelace"]
    assert graph.find("ada lovelace") == [graph.nodes[0]]
    assert graph.edges_of(graph.nodes[1]) == graph.edges
    assert graph.edges[0].probability == 0.9
    assert str(graph) == 'Ada --left--> Rome & "Co";  (0.90, 2 sentences)'


def test_json_lines_are_read_again(graph, tmp_path):
    graph.save(tmp_path / "g.jsonl")
    assert read_graph(tmp_path / "g.jsonl") == graph
    first, second, edge = (json.loads(line) for line in (tmp_path / "g.jsonl").read_text().splitlines())
    assert first["name"] == "Ada"
    assert second["mentions"] == [{"document": "a", "start": 20, "end": 27, "text": 'Rome & "Co";'}]
    assert edge["evidence"][1]["sentence"] == "Ada left."


def test_graphml_is_xml_with_its_keys(graph, tmp_path):
    graph.save(tmp_path / "g.graphml")
    space = "{http://graphml.graphdrawing.org/xmlns}"
    root = ElementTree.parse(tmp_path / "g.graphml").getroot()
    assert root.tag == f"{space}graphml"
    keys = {(key.get("for"), key.get("id")) for key in root.iter(f"{space}key")}
    for owner in ("node", "edge"):
        for element in root.iter(f"{space}{owner}"):
            assert {(owner, data.get("key")) for data in element} <= keys
    nodes = {node.get("id"): {d.get("key"): d.text for d in node} for node in root.iter(f"{space}node")}
    assert nodes["n2"]["name"] == 'Rome & "Co";'
    (edge,) = root.iter(f"{space}edge")
    assert (edge.get("source"), edge.get("target")) == ("n1", "n2")


def test_tables_for_neo4j(graph, tmp_path):
    graph.save(tmp_path / "g")
    tables = {
        path.name: list(csv.reader(io.StringIO(path.read_text("utf-8"), newline="")))
        for path in (tmp_path / "g").iterdir()
    }
    assert tables["nodes.csv"][0] == ["id:ID(Entity)", "name", "names:string[]", "mentions:int", ":LABEL"]
    assert tables["nodes.csv"][1] == ["n1", "Ada", "Ada;Ada Lovelace", "3", "Entity;PER"]
    assert tables["nodes.csv"][2] == ["n2", 'Rome & "Co";', 'Rome & "Co",', "1", "Entity;Thing"]
    assert tables["documents.csv"] == [["id:ID(Document)", ":LABEL"], ["a", "Document"], ["b", "Document"]]
    assert tables["edges.csv"][1][:4] == ["n1", "n2", "0.9", "2"]
    assert tables["edges.csv"][1][-1] == "left"
    assert tables["mentions.csv"][1] == ["n1", "a", "0", "12", "Ada Lovelace", "MENTIONED_IN"]


@pytest.mark.parametrize("name", ["g.jsonl", "g.graphml", "g"])
def test_what_is_there_is_not_replaced_unasked(graph, tmp_path, name):
    graph.save(tmp_path / name)
    with pytest.raises(elmokit.DataError, match=r"exists already; .* overwrite=True"):
        graph.save(tmp_path / name)
    graph.save(tmp_path / name, overwrite=True)


def test_wrong_names_are_refused(graph, tmp_path):
    with pytest.raises(elmokit.ConfigError, match=r"\.jsonl, as \.graphml, or as a folder"):
        graph.save(tmp_path / "g.png")
    (tmp_path / "file").write_text("x")
    with pytest.raises(elmokit.DataError, match="is a file"):
        graph.save(tmp_path / "file", overwrite=True)
    (tmp_path / "bad.jsonl").write_text('{"type": "node"}\n')
    with pytest.raises(elmokit.DataError, match="line 1: expected a node or an edge"):
        read_graph(tmp_path / "bad.jsonl")


def test_a_picture_is_drawn(graph, tmp_path):
    graph.draw(tmp_path / "g.svg")
    assert "left" in (tmp_path / "g.svg").read_text() or (tmp_path / "g.svg").stat().st_size > 5000
    with pytest.raises(elmokit.DataError, match="no relations"):
        KnowledgeGraph().draw(tmp_path / "h.svg")
