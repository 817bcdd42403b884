"""Draw a graph: names in boxes, coloured by kind, and arrows with the relations."""

import textwrap
import unicodedata
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from elmokit.base import COLOURS, drawing
from elmokit.errors import DataError

if TYPE_CHECKING:
    from elmokit.graph.knowledge_graph import GraphEdge, GraphNode, KnowledgeGraph

Places = npt.NDArray[np.float64]

_STEPS = 400
_SIDE = 1.75  # inches for each node, squared
_LETTER, _LINE = 0.082, 0.17  # inches
_MARGIN = 0.16
_LONGEST = 18  # letters in a line of a name
_GREY, _INK = "#6b7280", "#1f2937"
_MOST_RELATIONS = 2  # names at one arrow


def draw_graph(graph: "KnowledgeGraph", path: Path, *, most: int = 30) -> None:
    """Draw the nodes with the most relations, and the relations between them."""
    nodes, edges = _chosen(graph, most)
    names = [_wrapped(node.name) for node in nodes]
    sizes = np.array([_size(name) for name in names])  # (n, 2)
    number = {node.id: place for place, node in enumerate(nodes)}
    pairs = sorted({tuple(sorted((number[one.source], number[one.target]))) for one in edges})
    places = _apart(_layout(len(nodes), pairs), sizes)
    lowest, highest = (places - sizes / 2).min(axis=0) - 0.3, (places + sizes / 2).max(axis=0) + 0.3
    width, height = highest - lowest
    colours = _colours(nodes)
    with drawing(path, width=max(4.0, width), height=max(2.5, height) + 0.45) as figure:
        axes = figure.add_subplot()
        axes.set(xlim=(lowest[0], highest[0]), ylim=(lowest[1], highest[1]), aspect="equal")
        axes.axis("off")
        boxes = [
            _draw_box(axes, places[place], sizes[place], name, colours[nodes[place].kind])
            for place, name in enumerate(names)
        ]
        _draw_edges(axes, edges, number, boxes, places)
        handles = [
            axes.scatter([], [], s=70, color=colour, label=kind or "?") for kind, colour in colours.items()
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=9)


def _chosen(graph: "KnowledgeGraph", most: int) -> "tuple[list[GraphNode], list[GraphEdge]]":
    """Return the nodes with the most relations and the edges between them.

    Raises:
        DataError: there are no relations.
    """
    degrees = Counter(end for edge in graph.edges for end in (edge.source, edge.target))
    if not degrees:
        raise DataError("the graph has no relations, so there is nothing to draw; take more documents")
    kept = {name for name, _ in degrees.most_common(most)}
    edges = [edge for edge in graph.edges if {edge.source, edge.target} <= kept]
    joined = {end for edge in edges for end in (edge.source, edge.target)}
    return [node for node in graph.nodes if node.id in joined], edges


def _colours(nodes: "list[GraphNode]") -> dict[str, str]:
    kinds = [kind for kind, _ in Counter(node.kind for node in nodes).most_common()]
    return {kind: COLOURS[place] if place < len(COLOURS) else _GREY for place, kind in enumerate(kinds)}


def _wrapped(name: str) -> str:
    return "\n".join(textwrap.wrap(name, _LONGEST)) or name


def _size(name: str) -> tuple[float, float]:
    """Return width and height of the box of a name, in inches."""
    lines = name.split("\n")
    columns = max(
        sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in line) for line in lines
    )
    return _LETTER * columns + 2 * _MARGIN, _LINE * len(lines) + 1.2 * _MARGIN


def _layout(count: int, pairs: list[Any]) -> Places:
    """Return places (n, 2) in inches, by the forces of Fruchterman and Reingold (1991) and a pull inwards.

    Each part of the graph that is connected begins at its own place on a circle.
    """
    random = np.random.default_rng(0)
    joined: Places = np.zeros((count, count))
    for a, b in pairs:
        joined[a, b] = joined[b, a] = 1.0
    parts = _connected(joined)
    angle = 2 * np.pi * parts / (parts.max() + 1)
    reach = _SIDE * np.sqrt(count) / 2
    places: Places = reach * np.stack([np.cos(angle), np.sin(angle)], axis=1) + random.normal(
        0, 0.4, (count, 2)
    )
    for step in range(_STEPS):
        gaps = places[:, None] - places[None]  # (n, n, 2)
        far = np.maximum(np.linalg.norm(gaps, axis=2), 0.05)
        push = _SIDE**2 / far - joined * far**2 / _SIDE
        np.fill_diagonal(push, 0.0)
        force = (gaps / far[..., None] * push[..., None]).sum(axis=1) - 0.9 * places
        length = np.maximum(np.linalg.norm(force, axis=1, keepdims=True), 1e-9)
        warmth = reach * 0.2 * (1 - step / _STEPS)
        places += force / length * np.minimum(length, warmth)
    return places


def _connected(joined: Places) -> npt.NDArray[np.int64]:
    """Return for each node the number of its connected part."""
    parts = np.arange(len(joined))
    for _ in range(len(joined)):
        lowest = np.where(joined > 0, parts[None], len(joined)).min(axis=1, initial=len(joined))
        parts = np.minimum(parts, lowest)
    return np.unique(parts, return_inverse=True)[1]


def _apart(places: Places, sizes: Places) -> Places:
    """Push boxes apart that overlap, with room between them for the names of relations."""
    places = places.copy()
    needed = (sizes[:, None] + sizes[None]) / 2 + np.array([0.45, 0.4])  # (n, n, 2)
    for _ in range(_STEPS):
        gaps = places[:, None] - places[None]
        overlap = needed - np.abs(gaps)  # (n, n, 2)
        hit = (overlap > 0).all(axis=2)
        np.fill_diagonal(hit, False)
        if not hit.any():
            break
        axis = overlap.argmin(axis=2)  # push along the shorter way
        for a, b in zip(*np.nonzero(hit), strict=True):
            if a < b:
                way = axis[a, b]
                sign = 1.0 if places[a, way] >= places[b, way] else -1.0
                shift = sign * (overlap[a, b, way] / 2 + 0.01)
                places[a, way] += shift
                places[b, way] -= shift
    return places


def _draw_box(axes: Any, place: Places, size: Places, name: str, colour: str) -> Any:  # noqa: ANN401
    from matplotlib.colors import to_rgb
    from matplotlib.patches import FancyBboxPatch

    pale = tuple(0.84 + 0.16 * part for part in to_rgb(colour))
    (x, y), (width, height) = (place - size / 2).tolist(), size.tolist()
    style = f"round,pad=0,rounding_size={min(size) / 2.4:.3f}"
    box = FancyBboxPatch((x, y), width, height, boxstyle=style, fc=pale, ec=colour, lw=1.3, zorder=3)
    axes.add_patch(box)
    axes.text(*place, name, ha="center", va="center", size=9.5, color=_INK, zorder=4, linespacing=1.15)
    return box


def _draw_edges(
    axes: Any,  # noqa: ANN401 (of matplotlib)
    edges: "list[GraphEdge]",
    number: dict[str, int],
    boxes: list[Any],
    places: Places,
) -> None:
    """Draw an arrow for each pair and direction, curved if there is one in the other direction."""
    from matplotlib.patches import FancyArrowPatch

    together: dict[tuple[int, int], list[GraphEdge]] = defaultdict(list)
    for edge in edges:
        together[number[edge.source], number[edge.target]].append(edge)
    for (a, b), same in together.items():
        bend = 0.22 if (b, a) in together else 0.0
        best = max(edge.probability for edge in same)
        arrow = FancyArrowPatch(
            places[a], places[b], patchA=boxes[a], patchB=boxes[b], arrowstyle="-|>", mutation_scale=11,
            connectionstyle=f"arc3,rad={bend}", color=_GREY, lw=0.9 + 0.9 * best, shrinkA=2, shrinkB=3,
            alpha=0.8, zorder=1,
        )  # fmt: skip
        axes.add_patch(arrow)
        names = [edge.relation for edge in same]
        more = f" +{len(names) - _MOST_RELATIONS}" if len(names) > _MOST_RELATIONS else ""
        way = places[b] - places[a]
        middle = (places[a] + places[b]) / 2 + bend / 2 * np.array([way[1], -way[0]])
        axes.text(
            *middle, ", ".join(names[:_MOST_RELATIONS]) + more, size=7.5, color=_GREY, ha="center",
            va="center", zorder=2, bbox={"fc": "white", "ec": "none", "pad": 1.2, "alpha": 0.9},
        )  # fmt: skip
