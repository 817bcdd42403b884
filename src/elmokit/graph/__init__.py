"""Documents in, a graph of the things in them and of the relations between these out."""

from elmokit.graph.entity_linking import EntityLinker, LinkSettings, PlacedEntity, normal_form
from elmokit.graph.graph_building import build_graph
from elmokit.graph.knowledge_graph import (
    Evidence,
    GraphEdge,
    GraphNode,
    KnowledgeGraph,
    NodeMention,
    read_graph,
)

__all__ = [
    "EntityLinker", "Evidence", "GraphEdge", "GraphNode", "KnowledgeGraph", "LinkSettings", "NodeMention",
    "PlacedEntity", "build_graph", "normal_form", "read_graph",
]  # fmt: skip
