"""A graph of entities and relations, with the places in the documents that it was made from."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from elmokit.base import shown
from elmokit.errors import DataError
from elmokit.graph.graph_files import write_graph
from elmokit.graph.graph_picture import draw_graph
from elmokit.text import read_json_lines


@dataclass(frozen=True)
class NodeMention:
    """Where an entity is named: `text` is the document's `[start:end]`."""

    document: str
    start: int
    end: int
    text: str


@dataclass
class GraphNode:
    """A thing: a person, a place, a company, ….

    Attributes:
        id: its name in the graph's files.
        kind: what kind of thing it is.
        mentions: where it is named, in the order of the documents.
    """

    id: str
    kind: str
    mentions: list[NodeMention] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """What it is called, the most frequent name first and of equally frequent ones the longest."""
        counts = Counter(mention.text for mention in self.mentions)
        return sorted(counts, key=lambda name: (-counts[name], -len(name), name))

    @property
    def name(self) -> str:
        """The first of the names."""
        return self.names[0]


@dataclass(frozen=True)
class Evidence:
    """A sentence that says it, the document's `[start:end]`, and how probable the model found that."""

    document: str
    start: int
    end: int
    sentence: str
    probability: float


@dataclass
class GraphEdge:
    """A relation from the node with the id `source` to that with the id `target`, and what says so."""

    source: str
    target: str
    relation: str
    evidence: list[Evidence] = field(default_factory=list)

    @property
    def probability(self) -> float:
        """That of the most convincing sentence."""
        return max(one.probability for one in self.evidence)


@dataclass
class KnowledgeGraph:
    """Nodes and edges, in the order of the documents that first name them.

    Example:
        >>> ada = GraphNode("n1", "PER", [NodeMention("a.txt", 0, 3, "Ada")])
        >>> rome = GraphNode("n2", "LOC", [NodeMention("a.txt", 9, 13, "Rome")])
        >>> said = Evidence("a.txt", 0, 14, "Ada left Rome.", 0.9)
        >>> print(KnowledgeGraph([ada, rome], [GraphEdge("n1", "n2", "left", [said])]))
        Ada --left--> Rome  (0.90, 1 sentence)
    """

    nodes: list[GraphNode] = field(default_factory=list)
    edges: list[GraphEdge] = field(default_factory=list)

    def __str__(self) -> str:
        """Return a line for each edge, the one with the most evidence first."""
        names = {node.id: node.name for node in self.nodes}
        edges = sorted(self.edges, key=lambda edge: (-len(edge.evidence), -edge.probability))
        return "\n".join(
            f"{names[edge.source]} --{edge.relation}--> {names[edge.target]}  ({edge.probability:.2f}, "
            f"{len(edge.evidence)} sentence{'s' * (len(edge.evidence) > 1)})"
            for edge in edges
        )

    def find(self, name: str) -> list[GraphNode]:
        """Return the nodes that are called so, in upper or lower case."""
        wanted = name.casefold()
        return [node for node in self.nodes if any(one.casefold() == wanted for one in node.names)]

    def edges_of(self, node: GraphNode) -> list[GraphEdge]:
        """Return the edges from and to a node."""
        return [edge for edge in self.edges if node.id in (edge.source, edge.target)]

    def sizes(self) -> dict[str, int]:
        """Count nodes, their mentions, and edges."""
        mentions = sum(len(node.mentions) for node in self.nodes)
        return {"nodes": len(self.nodes), "mentions": mentions, "edges": len(self.edges)}

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the graph as JSON lines (.jsonl), GraphML (.graphml), or as tables for Neo4j (a folder).

        Raises:
            ConfigError: the ending stands for none of these.
            DataError: something is there already, or the place cannot be written.
        """
        write_graph(self, Path(path), overwrite=overwrite)

    def draw(self, path: str | Path, *, most: int = 40) -> None:
        """Draw the `most` connected nodes and the relations between them; needs matplotlib.

        Raises:
            MissingExtra: matplotlib is not installed.
            ConfigError: the ending names no format of pictures.
        """
        draw_graph(self, Path(path), most=most)


def read_graph(path: str | Path) -> KnowledgeGraph:
    """Read a graph that was saved as JSON lines.

    Raises:
        DataError: the file holds something else.
    """
    graph = KnowledgeGraph()
    for number, data in read_json_lines(Path(path), whole=True):
        where = f"{path}, line {number}"
        try:
            if data["type"] == "node":
                mentions = [NodeMention(**one) for one in data["mentions"]]
                graph.nodes.append(GraphNode(data["id"], data["kind"], mentions))
            else:
                evidence = [Evidence(**one) for one in data["evidence"]]
                graph.edges.append(GraphEdge(data["source"], data["target"], data["relation"], evidence))
        except (KeyError, TypeError) as error:
            raise DataError(
                f"{where}: expected a node or an edge as a graph's file has them, found {shown(data)}"
            ) from error
    return graph
