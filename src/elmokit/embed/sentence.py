"""The result of embedding: one sentence, its tokens and their vectors."""

from dataclasses import dataclass
from typing import Literal, SupportsIndex, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elmokit.base import check_option

Floats = npt.NDArray[np.float32]
Pooling = Literal["mean", "max", "ends"]
LayerChoice = Literal["all", "top", "average", "mix"]


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
        """Return the vector of a token, given by its position, or by its text if that occurs once."""
        if not isinstance(which, str):
            by_position: Floats = self.vectors[which]
            return by_position
        places = [i for i, token in enumerate(self.tokens) if token == which]
        if len(places) != 1:
            found = f"stands at {places}; take one by its position" if places else f"is not in {self.tokens}"
            raise KeyError(f"{which!r} {found}")
        return self[places[0]]

    def pool(self, pooling: Pooling = "mean") -> Floats:
        """Return one vector (2P,) for the whole sentence; zeros for an empty one.

        Args:
            pooling: "mean" or "max" over the tokens, or "ends": what each direction knows when it has read
                everything, i.e. the forward half of the last token and the backward half of the first.
        """
        check_option("pooling", pooling, get_args(Pooling))
        vectors = self.vectors
        if not len(vectors):
            return np.zeros(vectors.shape[1], np.float32)
        if pooling == "ends":
            half = vectors.shape[1] // 2
            return np.concatenate([vectors[-1, :half], vectors[0, half:]])
        pooled: Floats = vectors.mean(axis=0) if pooling == "mean" else vectors.max(axis=0)
        return pooled

    def select(self, layers: LayerChoice) -> Floats:
        """Return "all" layers (L+1, T, 2P), or the "top" one, their "average" or their "mix" (T, 2P)."""
        check_option("layers", layers, get_args(LayerChoice))
        if layers in ("all", "mix"):
            return self.layers if layers == "all" else self.vectors
        chosen: Floats = self.layers[-1] if layers == "top" else self.layers.mean(axis=0)
        return chosen

    def to_torch(self) -> Tensor:
        """Return the layers (L+1, T, 2P) as a tensor that shares their memory."""
        return torch.from_numpy(self.layers)
