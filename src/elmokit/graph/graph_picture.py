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
_SIDE = 1.5  # inches from a node to its neighbours
_ROOM = 0.55  # inches between connected parts
_FLAT = 0.75  # heights by widths: names need more room to the side
_SHAPE = 1.3  # of the picture: its width by the root of its area
_LETTER, _LINE = 0.082, 0.17  # inches
_MARGIN = 0.16
_LONGEST = 18  # letters in a line of a name
_GREY, _INK = "#6b7280", "#1f2937"
_MOST_RELATIONS = 2  # names at one arrow


def draw_graph(graph: "KnowledgeGraph", path: Path, *, most: int = 40) -> None:
    """Draw the nodes with the most relations, and the relations between them."""
    nodes, edges = _chosen(graph, most)
    names = [_wrapped(node.name) for node in nodes]
    sizes = np.array([_size(name) for name in names])  # (n, 2)
    number = {node.id: place for place, node in enumerate(nodes)}
    joined: Places = np.zeros((len(nodes), len(nodes)))
    for edge in edges:
        a, b = number[edge.source], number[edge.target]
        joined[a, b] = joined[b, a] = 1.0
    places = _arranged(sizes, joined)
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
        _draw_edges(axes, edges, number, boxes, places, sizes)
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


def _arranged(sizes: Places, joined: Places) -> Places:
    """Return places (n, 2) of boxes in inches: each connected part for itself, packed in rows.

    Args:
        sizes: (n, 2) widths and heights of the boxes.
        joined: (n, n) 1 where two nodes have an edge.
    """
    places: Places = np.zeros((len(sizes), 2))
    numbers = _connected(joined)
    parts = [np.flatnonzero(numbers == part) for part in range(numbers.max() + 1)]
    boxes = []
    for part in parts:
        inner = joined[np.ix_(part, part)]
        own = _apart(_layout(inner), sizes[part], inner)
        lowest = (own - sizes[part] / 2).min(axis=0)
        places[part] = own - lowest
        boxes.append((own + sizes[part] / 2).max(axis=0) - lowest + _ROOM)
    for part, corner in zip(parts, _shelves(boxes), strict=True):
        places[part] += corner
    return places


def _shelves(boxes: list[Places]) -> list[Places]:
    """Return the corners of boxes that stand on shelves, the highest boxes first."""
    order = sorted(range(len(boxes)), key=lambda number: -boxes[number][1])
    width = max(max(box[0] for box in boxes), _SHAPE * sum(box[0] * box[1] for box in boxes) ** 0.5)
    corners: dict[int, Places] = {}
    x = y = height = 0.0
    for number in order:
        if x and x + boxes[number][0] > width:
            x, y, height = 0.0, y + height, 0.0
        # Boxes stand in the middle of the height of their shelf, which is that of its first box.
        height = height or float(boxes[number][1])
        corners[number] = np.array([x, -y - (height + boxes[number][1]) / 2])
        x += boxes[number][0]
    return [corners[number] for number in range(len(boxes))]


def _layout(joined: Places) -> Places:
    """Return places (n, 2) of the nodes of a connected part, by Fruchterman and Reingold's forces (1991)."""
    count = len(joined)
    reach = _SIDE * np.sqrt(count) / 2
    places: Places = reach * np.random.default_rng(0).uniform(-1, 1, (count, 2))
    for step in range(_STEPS if count > 1 else 0):
        gaps = places[:, None] - places[None]  # (n, n, 2)
        far = np.maximum(np.linalg.norm(gaps, axis=2), 0.05)
        push = _SIDE**2 / far - joined * far**2 / _SIDE
        np.fill_diagonal(push, 0.0)
        force = (gaps / far[..., None] * push[..., None]).sum(axis=1)
        length = np.maximum(np.linalg.norm(force, axis=1, keepdims=True), 1e-9)
        warmth = reach * 0.2 * (1 - step / _STEPS)
        places += force / length * np.minimum(length, warmth)
    if count > 1:  # the longer side lies flat
        axes = np.linalg.svd(places - places.mean(axis=0), full_matrices=False)[2]
        places = (places - places.mean(axis=0)) @ axes.T * np.array([1.0, _FLAT])
    return places


def _connected(joined: Places) -> npt.NDArray[np.int64]:
    """Return for each node the number of its connected part."""
    parts = np.arange(len(joined))
    for _ in range(len(joined)):
        lowest = np.where(joined > 0, parts[None], len(joined)).min(axis=1, initial=len(joined))
        parts = np.minimum(parts, lowest)
    return np.unique(parts, return_inverse=True)[1]


def _apart(places: Places, sizes: Places, joined: Places) -> Places:
    """Push boxes apart that overlap, with room for the names of relations between those that are joined."""
    places = places.copy()
    room = np.array([0.25, 0.25]) + joined[..., None] * np.array([0.85, 0.25])  # (n, n, 2)
    needed = (sizes[:, None] + sizes[None]) / 2 + room
    for _ in range(_STEPS):
        overlap = needed - np.abs(places[:, None] - places[None])  # (n, n, 2)
        hit = (overlap > 0).all(axis=2)
        np.fill_diagonal(hit, False)
        if not hit.any():
            break
        axis = overlap.argmin(axis=2)  # push along the shorter way
        for a, b in zip(*np.nonzero(np.triu(hit)), strict=True):
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
    sizes: Places,
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
        # The middle of what can be seen of the arrow.
        leaves, arrives = (float((sizes[end] / 2 / (np.abs(way) + 1e-9)).min()) for end in (a, b))
        middle = places[a] + way * (leaves + 1 - arrives) / 2
        middle += bend / 2 * np.array([way[1], -way[0]])
        axes.text(
            *middle, ", ".join(names[:_MOST_RELATIONS]) + more, size=7.5, color=_GREY, ha="center",
            va="center", zorder=2, bbox={"fc": "white", "ec": "none", "pad": 1.2, "alpha": 0.9},
        )  # fmt: skip
