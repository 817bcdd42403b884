"""A table of entries that maps the tensors of a file to those of the model, and what formats do with it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from elmokit.model import BiLM, BiLMConfig

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Entry:
    """One tensor of the file and the tensors of the model that it fills.

    Attributes:
        name, shape: those of the file's tensor.
        keys: names of the model's tensors, one or two.
        to_ours: converts the file's tensor to (len(keys), …).
        to_file: the inverse.
        direction: index into the model's tensors, if they hold both directions.
    """

    name: str
    shape: tuple[int, ...]
    keys: tuple[str, ...]
    to_ours: Callable[[Tensor], Tensor]
    to_file: Callable[[Tensor], Tensor]
    direction: int | None = None

    def fill(self, state: dict[str, Tensor], content: Tensor) -> None:
        """Copy the file's tensor into the model's state."""
        for target, part in zip(self._tensors(state), self.to_ours(content), strict=True):
            target.copy_(part)

    def content(self, state: dict[str, Tensor]) -> Tensor:
        """Return the file's tensor for a model's state."""
        return self.to_file(torch.stack(self._tensors(state)))

    def _tensors(self, state: dict[str, Tensor]) -> list[Tensor]:
        tensors = [state[key] for key in self.keys]
        return tensors if self.direction is None else [tensor[self.direction] for tensor in tensors]


def _add_axis(x: Tensor) -> Tensor:
    return x[None]


def _drop_axis(x: Tensor) -> Tensor:
    return x[0]


PLAIN = (_add_axis, _drop_axis)  # the same tensor in file and model


def misfits(entries: Iterable[Entry], shapes: Shapes, *, ours: Callable[[str], bool]) -> Iterator[str]:
    """Describe what is missing in a file, has another shape, or is not expected.

    Args:
        entries: the tensors that a model with these options has.
        shapes: the tensors that the file has.
        ours: whether a name without an entry must belong to a model.
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
    """Join the first three, and say how many more there are."""
    more = f" (and {len(wrong) - 3} more)" if len(wrong) > 3 else ""
    return "; ".join(wrong[:3]) + more


def make_model(config: BiLMConfig, entries: Iterable[Entry], read: Callable[[Entry], Tensor]) -> BiLM:
    """Make a model from the tensors that `read` returns; only one of them is in memory twice."""
    with torch.device("meta"):
        model = BiLM(config)
    state = {name: torch.empty(tensor.shape) for name, tensor in model.state_dict().items()}
    for entry in entries:
        entry.fill(state, read(entry))
    model.load_state_dict(state, assign=True)
    return model.eval()
