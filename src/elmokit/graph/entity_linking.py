"""Which mentions in a collection mean the same thing: by their names, and by the vectors of their contexts.

A mention joins a node of its kind
- that has the same name, unless the contexts differ more than `apart`;
- one of whose names is longer and begins or ends with this name ("Lovelace" after "Ada Lovelace"), or has
  this name as its initials (UN, United Nations), or the other way round; of several such nodes the one that
  the document named last, else the one with the nearest contexts, if these are nearer than `near`.
Otherwise it begins a new node. Within a document long names come first. Contexts are compared by the cosine
of their vectors without the mean of all contexts so far, as all vectors of a model have much in common.
Memory grows with the nodes, not with the text: a node keeps the mean of its contexts.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from elmokit.base import bounded, check_fields

Floats = npt.NDArray[np.float32]

_EDGES = re.compile(r"^[\W_]+|[\W_]+$|(?:'|’)s$")
_ARTICLE = re.compile(r"^(?:the|a|an)\s+(?=\S)")
_WORD = re.compile(r"\w+")
_LEAST_PART = 3  # letters of a name that may stand for a longer one; of Chinese characters two
_ENOUGH = 20  # contexts after which their mean means something


@dataclass(frozen=True, kw_only=True)
class LinkSettings:
    """When mentions are linked.

    Attributes:
        apart: mentions of the same name with a cosine below this are two things; -1 never parts them.
        near: mentions of which one has a part of the other's name, or its initials, and which are not in one
            document, need this cosine at least; 1 never links them.
    """

    apart: float = bounded(-0.5, least=-1, most=1)
    near: float = bounded(0.5, least=-1, most=1)

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class PlacedEntity:
    """A mention: its name as it is written, its kind, and the vector of its context if there is one."""

    name: str
    kind: str
    context: Floats | None = None


@dataclass
class _Known:
    """What the linker keeps of a node."""

    number: int
    forms: set[str] = field(default_factory=set)
    total: Floats | None = None
    count: int = 0
    document: str = ""  # that named it last


def normal_form(name: str) -> str:
    """Return a name without what does not tell it apart: case, articles, marks around it.

    Example:
        >>> normal_form("The United  Nations'"), normal_form("Lovelace's"), normal_form("“京东方”")
        ('united nations', 'lovelace', '京东方')
    """
    form = " ".join(name.casefold().split())
    previous = ""
    while form != previous:
        previous, form = form, _EDGES.sub("", form)
    return _ARTICLE.sub("", form) or name


def initials(name: str) -> set[str]:
    """Return the short forms of a name: the first letters of its capitalised words, and of all its words.

    Example:
        >>> sorted(initials("Bank of New England")), initials("acute renal failure"), initials("Ada")
        (['bne', 'bone'], {'arf'}, set())
    """
    words = [word for word in _WORD.findall(name) if word[0].isalpha()]
    capitals = "".join(word[0] for word in words if word[0].isupper())
    found = {capitals, "".join(word[0] for word in words) if len(words) >= _LEAST_PART else ""}
    return {one.casefold() for one in found if len(one) > 1}


class EntityLinker:
    """Numbers the things that mentions mean, document by document.

    Example:
        >>> linker = EntityLinker()
        >>> linker.link("a.txt", [PlacedEntity("Lovelace", "PER"), PlacedEntity("Ada Lovelace", "PER")])
        [0, 0]
        >>> linker.link("b.txt", [PlacedEntity("Ada Lovelace's", "PER"), PlacedEntity("Rome", "LOC")])
        [0, 1]
    """

    def __init__(self, settings: LinkSettings | None = None) -> None:
        self._settings = settings or LinkSettings()
        self._nodes: list[_Known] = []
        self._named: dict[tuple[str, str], list[_Known]] = defaultdict(list)  # kind and name
        self._parts: dict[tuple[str, str], list[_Known]] = defaultdict(list)  # kind and part of a name
        self._short: dict[tuple[str, str], list[_Known]] = defaultdict(list)  # kind and a whole, as a part
        self._total: Floats | None = None
        self._count = 0

    def link(self, document: str, mentions: Sequence[PlacedEntity]) -> list[int]:
        """Return the number of the node of each mention of a document; a new number is a new node."""
        order = sorted(range(len(mentions)), key=lambda place: -len(mentions[place].name))
        found: dict[int, int] = {}
        for place in order:
            mention = mentions[place]
            form = normal_form(mention.name)
            node = self._same(document, mention, form)
            if node is None and not self._named[mention.kind, form]:
                node = self._longer_or_shorter(document, mention, form, before=found, place=place)
            node = node or self._new()
            self._add(node, document, mention, form)
            found[place] = node.number
        return [found[place] for place in range(len(mentions))]

    def _new(self) -> _Known:
        node = _Known(len(self._nodes))
        self._nodes.append(node)
        return node

    def _same(self, document: str, mention: PlacedEntity, form: str) -> _Known | None:
        """Return the node that has this name, the nearest one if there are several."""
        same = self._named[mention.kind, form]
        here = [node for node in same if node.document == document]
        return self._nearest(here or same, mention, self._settings.apart)

    def _longer_or_shorter(
        self, document: str, mention: PlacedEntity, form: str, *, before: Mapping[int, int], place: int
    ) -> _Known | None:
        """Return the node of which this name is a part, or the other way round.

        Args:
            document: of the mention.
            mention: it.
            form: its name.
            before: the nodes of the mentions of the document so far, by their places in it.
            place: that of the mention.
        """
        nodes = list({one.number: one for one in self._related(mention, form)}.values())
        here = {one.number: one for one in nodes if one.document == document}
        if here:  # of several, the one that was named last
            named = [at for at, number in before.items() if number in here]
            at = max(named, key=lambda at: (at < place, at if at < place else -at))
            return here[before[at]]
        return None if mention.context is None else self._nearest(nodes, mention, self._settings.near)

    def _related(self, mention: PlacedEntity, form: str) -> Iterator[_Known]:
        """Yield the nodes with longer names of which this is a part, and with parts of this name."""
        yield from self._parts[mention.kind, form]
        for part in _parts_of(mention.name, form):
            yield from self._short[mention.kind, part]

    def _nearest(self, nodes: Sequence[_Known], mention: PlacedEntity, least: float) -> _Known | None:
        """Return the node with the nearest contexts, if these are near enough or cannot be compared."""
        cosines = [(self._cosine(node, mention), node) for node in nodes]
        if not cosines:
            return None
        cosine, node = max(cosines, key=lambda pair: (pair[0], -pair[1].number))
        return node if cosine >= least else None

    def _cosine(self, node: _Known, mention: PlacedEntity) -> float:
        """Return the cosine of contexts without what all have in common; 1 if too little is known."""
        if mention.context is None or node.total is None or self._total is None or self._count < _ENOUGH:
            return 1.0
        mean = self._total / self._count
        a, b = node.total / node.count - mean, mention.context - mean
        return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b) + 1e-9))

    def _add(self, node: _Known, document: str, mention: PlacedEntity, form: str) -> None:
        node.document = document
        if form not in node.forms:
            node.forms.add(form)
            self._named[mention.kind, form].append(node)
            if _is_part(form):
                self._short[mention.kind, form].append(node)
            for part in _parts_of(mention.name, form):
                self._parts[mention.kind, part].append(node)
        if mention.context is not None:
            node.total = mention.context if node.total is None else node.total + mention.context
            node.count += 1
            self._total = mention.context if self._total is None else self._total + mention.context
            self._count += 1


def _parts_of(name: str, form: str) -> Iterable[str]:
    """Return the names that may stand for a longer one: its first and its last words, and its initials."""
    words = form.split()
    if len(words) == 1 and not form.isascii():
        parts = {form[:length] for length in range(2, len(form))}  # 京东方 for 京东方科技集团
    else:
        parts = {" ".join(words[:place]) for place in range(1, len(words))}
        parts |= {" ".join(words[place:]) for place in range(1, len(words))}
    return {part for part in parts | initials(name) if part != form and _is_part(part)}


def _is_part(form: str) -> bool:
    return len(form) >= (_LEAST_PART if form.isascii() else 2) or (len(form) == 2 and form.isalpha())
