"""How the tensors of a file become ours: a table of entries, and what every format does with such a table."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from elmokit.model import BiLM, BiLMConfig

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Entry:
    """One tensor of the file and the tensors of ours that it fills.

    Attributes:
        name, shape: of the file's tensor.
        keys: our tensors; most of the file's fill one, some two.
        to_ours: the file's content → (len(keys), …).
        to_file: the inverse.
        direction: which part of our tensors it fills, when they hold both directions.
    """

    name: str
    shape: tuple[int, ...]
    keys: tuple[str, ...]
    to_ours: Callable[[Tensor], Tensor]
    to_file: Callable[[Tensor], Tensor]
    direction: int | None = None

    def fill(self, state: dict[str, Tensor], content: Tensor) -> None:
        """Copy the file's content into the tensors of `state` that it belongs to."""
        for target, part in zip(self._tensors(state), self.to_ours(content), strict=True):
            target.copy_(part)

    def content(self, state: dict[str, Tensor]) -> Tensor:
        """What the file holds for a model of this state."""
        return self.to_file(torch.stack(self._tensors(state)))

    def _tensors(self, state: dict[str, Tensor]) -> list[Tensor]:
        tensors = [state[key] for key in self.keys]
        return tensors if self.direction is None else [tensor[self.direction] for tensor in tensors]


def _add_axis(x: Tensor) -> Tensor:
    return x[None]


def _drop_axis(x: Tensor) -> Tensor:
    return x[0]


PLAIN = (_add_axis, _drop_axis)  # the file's content is ours as it is


def misfits(entries: Iterable[Entry], shapes: Shapes, *, ours: Callable[[str], bool]) -> Iterator[str]:
    """What is missing, of another shape, or too much, in words.

    Args:
        entries: what a model of the options' sizes has.
        shapes: what the file has.
        ours: whether a name that no entry has is one that only a model has.
    """
    known = set()
    for entry in entries:
        known.add(entry.name)
        found = shapes.get(entry.name)
        if found != entry.shape:
            is_what = "missing" if found is None else list(found)
            yield f"{entry.name} is {is_what}, the options ask for {list(entry.shape)}"
    for name, shape in shapes.items():
        if name not in known and ours(name):
            yield f"{name} {list(shape)} has no place in the options"


def in_short(wrong: list[str]) -> str:
    """The first three, and how many more there are."""
    more = f" (and {len(wrong) - 3} more)" if len(wrong) > 3 else ""
    return "; ".join(wrong[:3]) + more


def make_model(config: BiLMConfig, entries: Iterable[Entry], read: Callable[[Entry], Tensor]) -> BiLM:
    """A model of these sizes whose weights `read` gives, entry by entry, so that only one is held twice."""
    with torch.device("meta"):
        model = BiLM(config)
    state = {name: torch.empty(tensor.shape) for name, tensor in model.state_dict().items()}
    for entry in entries:
        entry.fill(state, read(entry))
    model.load_state_dict(state, assign=True)
    return model.eval()
