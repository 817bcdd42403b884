"""A table of entries that maps the tensors of a file to those of the model, and what formats do with it."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from elmokit.errors import ModelFileError
from elmokit.model import BiLM, BiLMConfig

Shapes = Mapping[str, tuple[int, ...]]

FLOATS = ("float32", "float16", "bfloat16", "float64")
_BYTES = 4  # of a number in memory
# No format stores a weight in less than a byte.
_MOST_TIMES, _SLACK = 4, 64 * 1024 * 1024


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


def check_shapes(expected: Shapes, found: Shapes, what: str, hint: str) -> None:
    """Raise a ModelFileError if tensors are missing, not expected, or have other shapes.

    Args:
        expected: the tensors of a model with these settings.
        found: those of the file.
        what: begins the message, for example "weights.hdf5: weights and options".
        hint: ends it with what to do.
    """
    wrong = [
        f"{name} is {_words(found.get(name), 'missing')}, expected {_words(expected.get(name), 'none')}"
        for name in [*expected, *(name for name in found if name not in expected)]
        if found.get(name) != expected.get(name)
    ]
    if wrong:
        more = f" (and {len(wrong) - 3} more)" if len(wrong) > 3 else ""
        raise ModelFileError(f"{what} do not fit: {'; '.join(wrong[:3])}{more}; {hint}")


def check_softmax(path: Path, shapes: Shapes, weight: str, bias: str, dim: int) -> int:
    """Check the shapes of a softmax, [words, dim] and [words], and return its number of words."""
    rows = shapes[weight][:1]
    expected = {weight: (*rows, dim), bias: rows}
    hint = "it belongs to another model; use files that belong together"
    check_shapes(expected, {name: shapes[name] for name in expected}, f"{path}: softmax and model", hint)
    return rows[0]


def check_dtypes(path: Path, found: Mapping[str, str], allowed: Collection[str] = FLOATS) -> None:
    """Raise a ModelFileError if tensors are of another type than the allowed ones: they are no weights.

    Args:
        path: the file, for messages.
        found: the type of each tensor.
        allowed: the types that it may have.
    """
    for name, dtype in found.items():
        if dtype not in allowed:
            raise ModelFileError(
                f"{path}: {name} is stored as {dtype}, expected {' or '.join(allowed)}; the file was changed "
                "or is not one of weights: get it again"
            )


def check_amount(expected: Iterable[tuple[int, ...]], stored: int, what: str) -> None:
    """Raise a ModelFileError if tensors need far more memory than their files have bytes.

    Each of them may be stored and yet share its bytes with all the others.

    Args:
        expected: the shapes of all tensors.
        stored: the size of all files that hold them.
        what: begins the message.
    """
    needed = sum(_BYTES * math.prod(shape) for shape in expected)
    if needed > _MOST_TIMES * stored + _SLACK:
        raise ModelFileError(
            f"{what}: the weights would take {needed:,} bytes of memory, but are stored in {stored:,}; the "
            "files are damaged, or made to fill the memory: get them again"
        )


def _words(shape: tuple[int, ...] | None, otherwise: str) -> str:
    return otherwise if shape is None else str(list(shape))


def make_model(
    config: BiLMConfig, entries: Sequence[Entry], read: Callable[[Entry], Tensor], paths: Iterable[Path]
) -> BiLM:
    """Make a model from the tensors that `read` returns; only one of them is in memory twice.

    Raises:
        ModelFileError: the files in `paths`, which hold the tensors, are far too small for them.
    """
    paths = set(paths)
    stored = sum(path.stat().st_size for path in paths)
    check_amount((entry.shape for entry in entries), stored, ", ".join(map(str, sorted(paths))))
    with torch.device("meta"):
        model = BiLM(config)
    state = {name: torch.empty(tensor.shape) for name, tensor in model.state_dict().items()}
    for entry in entries:
        entry.fill(state, read(entry))
    model.load_state_dict(state, assign=True)
    return model.eval()
