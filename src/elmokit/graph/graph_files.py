"""The files of a graph.

.jsonl     a line for each node with its mentions, then one for each edge with its evidence
.graphml   for Gephi, yEd, Cytoscape, networkx
a folder   tables for `neo4j-admin database import`: nodes.csv, documents.csv, edges.csv, mentions.csv
"""

import csv
from collections.abc import Iterable, Iterator, Sequence
from io import TextIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import XMLGenerator
from xml.sax.xmlreader import AttributesImpl

from elmokit.base import draft_folder, locked, output_file, to_json, write_errors
from elmokit.errors import ConfigError, DataError

if TYPE_CHECKING:
    from elmokit.graph.knowledge_graph import KnowledgeGraph

_NAMESPACE = "http://graphml.graphdrawing.org/xmlns"
# What GraphML says about nodes and edges, with the type.
_NODE_DATA = {"name": "string", "kind": "string", "mentions": "int", "names": "string"}
_EDGE_DATA = {"relation": "string", "probability": "double", "sentences": "int", "evidence": "string"}
_MOST_EVIDENCE = 3  # sentences of an edge in GraphML and in tables; JSON lines have all
_BETWEEN = "|"  # of the names of a node in one cell


def check_graph_output(path: Path, *, overwrite: bool) -> None:
    """Refuse an output before the work for it is done.

    Raises:
        ConfigError: the ending stands for no format.
        DataError: something is there already.
    """
    if path.suffix not in ("", ".jsonl", ".graphml"):
        raise ConfigError(
            f"{path}: a graph is written as .jsonl, as .graphml, or as a folder of tables (no ending)"
        )
    there = any(path.iterdir()) if path.is_dir() else path.exists()
    if there and not overwrite:
        raise DataError(f"{path} exists already; choose another name, or pass overwrite=True to replace it")
    if path.exists() and path.is_dir() != (path.suffix == ""):
        kind = "folder" if path.is_dir() else "file"
        raise DataError(f"{path} is a {kind}, so the graph cannot take its place; choose another name")


def write_graph(graph: "KnowledgeGraph", path: Path, *, overwrite: bool = False) -> None:
    """Write a graph in the format that the ending stands for; see `KnowledgeGraph.save`."""
    check_graph_output(path, overwrite=overwrite)
    if not path.suffix:
        with locked(path), write_errors(path), draft_folder(path, overwrite=overwrite) as folder:
            for name, rows in _tables(graph):
                with (folder / name).open("w", encoding="utf-8", newline="") as file:
                    csv.writer(file, lineterminator="\n").writerows(rows)
        return
    with output_file(path) as draft, draft.open("w", encoding="utf-8", errors="backslashreplace") as file:
        if path.suffix == ".jsonl":
            file.writelines(f"{to_json(one)}\n" for one in json_objects_of(graph))
        else:
            _write_graphml(graph, file)


def json_objects_of(graph: "KnowledgeGraph") -> Iterator[dict[str, Any]]:
    """Yield nodes, then edges, as plain data."""
    for node in graph.nodes:
        mentions = [vars(mention) for mention in node.mentions]
        yield {"type": "node", "id": node.id, "name": node.name, "kind": node.kind, "mentions": mentions}
    for edge in graph.edges:
        evidence = [vars(one) | {"probability": round(one.probability, 4)} for one in edge.evidence]
        ends = {"source": edge.source, "target": edge.target, "relation": edge.relation}
        yield {"type": "edge", **ends, "probability": round(edge.probability, 4), "evidence": evidence}


def _write_graphml(graph: "KnowledgeGraph", file: TextIOBase) -> None:
    xml = XMLGenerator(file, "utf-8", short_empty_elements=True)
    xml.startDocument()
    xml.startElement("graphml", AttributesImpl({"xmlns": _NAMESPACE}))
    for owner, names in (("node", _NODE_DATA), ("edge", _EDGE_DATA)):
        for name, kind in names.items():
            key = {"id": name, "for": owner, "attr.name": name, "attr.type": kind}
            xml.startElement("key", AttributesImpl(key))
            xml.endElement("key")
    xml.startElement("graph", AttributesImpl({"edgedefault": "directed"}))
    for node in graph.nodes:
        cells: tuple[Any, ...] = (node.name, node.kind, len(node.mentions), _BETWEEN.join(node.names))
        _write_element(xml, "node", {"id": node.id}, zip(_NODE_DATA, cells, strict=True))
    for edge in graph.edges:
        cells = (edge.relation, round(edge.probability, 4), len(edge.evidence), _sentences(edge.evidence))
        ends = {"source": edge.source, "target": edge.target}
        _write_element(xml, "edge", ends, zip(_EDGE_DATA, cells, strict=True))
    xml.endElement("graph")
    xml.endElement("graphml")
    xml.endDocument()


def _write_element(
    xml: XMLGenerator, name: str, attributes: dict[str, str], data: Iterable[tuple[str, Any]]
) -> None:
    xml.startElement(name, AttributesImpl(attributes))
    for key, value in data:
        xml.startElement("data", AttributesImpl({"key": key}))
        xml.characters("".join(one if _in_xml(one) else " " for one in str(value)))
        xml.endElement("data")
    xml.endElement(name)


def _in_xml(character: str) -> bool:
    """Return whether XML 1.0 may hold a character."""
    code = ord(character)
    return code in (0x9, 0xA, 0xD) or (
        code >= 0x20 and not 0xD800 <= code < 0xE000 and code & 0xFFFE != 0xFFFE
    )


def _sentences(evidence: Sequence[Any]) -> str:
    best = sorted(evidence, key=lambda one: -one.probability)[:_MOST_EVIDENCE]
    return "\n".join(one.sentence for one in best)


def _tables(graph: "KnowledgeGraph") -> Iterator[tuple[str, list[list[Any]]]]:
    """Yield the names of tables and their rows; the headers are those that Neo4j asks for."""
    nodes: list[list[Any]] = [["id:ID(Entity)", "name", "names:string[]", "mentions:int", ":LABEL"]]
    mentions: list[list[Any]] = [
        [":START_ID(Entity)", ":END_ID(Document)", "start:int", "end:int", "text", ":TYPE"]
    ]
    documents: dict[str, None] = {}
    for node in graph.nodes:
        names = ";".join(name.replace(";", ",") for name in node.names)  # Neo4j's delimiter
        nodes.append([node.id, node.name, names, len(node.mentions), f"Entity;{node.kind or 'Thing'}"])
        for one in node.mentions:
            documents.setdefault(one.document)
            mentions.append([node.id, one.document, one.start, one.end, one.text, "MENTIONED_IN"])
    edges: list[list[Any]] = [
        [":START_ID(Entity)", ":END_ID(Entity)", "probability:float", "sentences:int", "evidence", ":TYPE"]
    ]
    for edge in graph.edges:
        facts = [round(edge.probability, 4), len(edge.evidence), _sentences(edge.evidence)]
        edges.append([edge.source, edge.target, *facts, edge.relation])
    yield "nodes.csv", nodes
    yield "documents.csv", [["id:ID(Document)", ":LABEL"], *[[name, "Document"] for name in documents]]
    yield "edges.csv", edges
    yield "mentions.csv", mentions
