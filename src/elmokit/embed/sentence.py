"""The result of embedding: one sentence, its tokens and their vectors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, SupportsIndex, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elmokit.base import check_option
from elmokit.errors import ConfigError
from elmokit.text import Run, find_word

Floats = npt.NDArray[np.float32]
Pooling = Literal["mean", "max", "ends"]
LayerName = Literal["all", "top", "average", "mix"]
# A name, the number of a layer (the token layer is 0), or the numbers of several.
LayerChoice: TypeAlias = LayerName | int | Sequence[int]

_SHOWN = 60  # characters of the text in `repr`


@dataclass(frozen=True, eq=False)
class Sentence:
    """One embedded sentence of T tokens.

    Attributes:
        text: As given; tokens that were given as a list are joined by blanks.
        tokens: What was read.
        offsets: Where each token stands in `text`.
        layers: (L+1, T, 2P) token layer first.
        vectors: (T, 2P) the mix of the layers.
        boundaries: (L+1, 2, 2P) the layers of `<S>` and `</S>`.
        truncated: Positions of the tokens that are too long for the model to read to their end.
        unknown: Positions of the tokens that a model of words, not of characters, does not know.
    """

    text: str
    tokens: list[str]
    offsets: list[tuple[int, int]]
    layers: Floats
    vectors: Floats
    boundaries: Floats
    truncated: list[int]
    unknown: list[int]

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, which: str | SupportsIndex | slice) -> Floats:
        """Return the vector of a token, given by its position, or of a word that occurs once.

        The vector of a word of several tokens is their mean: `s["银行"]` where each character is a token.
        """
        if not isinstance(which, str):
            by_position: Floats = self.vectors[which]
            return by_position
        runs = self.find(which)
        if len(runs) != 1:
            places = [start for start, _ in runs]
            found = f"stands at {places}; take one by its position" if runs else f"is not in {self.tokens}"
            raise KeyError(f"{which!r} {found}")
        mean: Floats = self.vectors[slice(*runs[0])].mean(axis=0)
        return mean

    def __repr__(self) -> str:
        num_layers, num_tokens, dim = self.layers.shape
        text = self.text if len(self.text) <= _SHOWN else f"{self.text[:_SHOWN]}…"
        return f"Sentence({text!r}, {num_tokens} tokens, {num_layers} layers of {dim} numbers)"

    def find(self, word: str, *, match_case: bool = True) -> list[Run]:
        """Return where a word stands: for each use the positions of its first token and after its last.

        Args:
            word: It may consist of several tokens, but only of whole ones.
            match_case: Whether upper and lower case are different.
        """
        return find_word(self.tokens, self.offsets, word, match_case=match_case)

    def merged(self, runs: Sequence[Run]) -> "Sentence":
        """Return a sentence whose tokens are these runs of tokens; their vectors are means.

        Args:
            runs: The positions of the first token and after the last of each new token.
        """
        offsets = [(self.offsets[start][0], self.offsets[end - 1][1]) for start, end in runs]
        means = [self.layers[:, start:end].mean(axis=1) for start, end in runs]  # (L+1, 2P) each
        num_layers, _, dim = self.layers.shape
        mixed = [self.vectors[start:end].mean(axis=0) for start, end in runs]
        return Sentence(
            text=self.text,
            tokens=[self.text[start:end] for start, end in offsets],
            offsets=offsets,
            layers=np.stack(means, axis=1) if runs else np.zeros((num_layers, 0, dim), np.float32),
            vectors=np.stack(mixed) if runs else np.zeros((0, dim), np.float32),
            boundaries=self.boundaries,
            truncated=_runs_with(self.truncated, runs),
            unknown=_runs_with(self.unknown, runs),
        )

    def pool(self, pooling: Pooling = "mean", *, layers: LayerChoice = "mix") -> Floats:
        """Return one vector (2P,) for the whole sentence; zeros for an empty one.

        Args:
            pooling: "mean" or "max" over the tokens, or "ends": what each direction knows when it has read
                everything, i.e. the forward half of the last token and the backward half of the first.
            layers: Which vectors of the tokens, see `select`; several layers give a vector each, (n, 2P).
        """
        check_option("pooling", pooling, get_args(Pooling))
        vectors = self.select(layers)  # (T, 2P) or (n, T, 2P)
        *several, num_tokens, dim = vectors.shape
        if not num_tokens:
            return np.zeros((*several, dim), np.float32)
        if pooling == "ends":
            half = dim // 2
            return np.concatenate([vectors[..., -1, :half], vectors[..., 0, half:]], axis=-1)
        pooled: Floats = vectors.mean(axis=-2) if pooling == "mean" else vectors.max(axis=-2)
        return pooled

    def select(self, layers: LayerChoice) -> Floats:
        """Return some of the layers.

        Args:
            layers: "top", "average", "mix" or the number of a layer give (T, 2P); "all" or a list of numbers
                give (n, T, 2P).
        """
        if layers in ("all", "mix"):
            return self.layers if layers == "all" else self.vectors
        if layers == "average":
            average: Floats = self.layers.mean(axis=0)
            return average
        chosen: Floats = self.layers[layer_index(layers, len(self.layers))]
        return chosen

    def to_torch(self) -> Tensor:
        """Return the layers (L+1, T, 2P) as a tensor that shares their memory."""
        return torch.from_numpy(self.layers)


def layer_index(layers: LayerChoice, num_layers: int) -> int | list[int]:
    """Return which layers "top", "all" or numbers mean: one index, or a list of them.

    Raises:
        ConfigError: There is no such layer, or the value is something else.

    Example:
        >>> layer_index("top", 3), layer_index("all", 3), layer_index([0, -1], 3)
        (2, [0, 1, 2], [0, 2])
    """
    if isinstance(layers, str):
        check_option("layers", layers, get_args(LayerName))
        return num_layers - 1 if layers == "top" else list(range(num_layers))
    given: Any = layers  # whatever a caller passed
    numbers = list(given) if isinstance(given, Sequence) else [given]
    if not numbers or not all(isinstance(n, int) and not isinstance(n, bool) for n in numbers):
        raise ConfigError(
            f"layers must be one of {', '.join(get_args(LayerName))}, a number or a list of numbers, "
            f"found {layers!r}"
        )
    for number in numbers:
        if not -num_layers <= number < num_layers:
            raise ConfigError(f"there is no layer {number}; the model has 0 to {num_layers - 1}")
    found = [number % num_layers for number in numbers]
    if len(set(found)) < len(found):
        raise ConfigError(f"layers={numbers!r} names a layer twice")
    return found if isinstance(given, Sequence) else found[0]


def _runs_with(positions: Sequence[int], runs: Sequence[Run]) -> list[int]:
    """Return the numbers of the runs that contain one of these positions."""
    return [number for number, run in enumerate(runs) if any(run[0] <= at < run[1] for at in positions)]
