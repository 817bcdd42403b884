"""Rows of vector files, as they are written and as they are read. T tokens, D = 2P dimensions of a vector."""

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One sentence to write, with vectors shaped as the file's `Layout` says."""

    text: str
    tokens: list[str]
    offsets: list[tuple[int, int]]
    vectors: FloatArray


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The shape and type of every row's vectors.

    Attributes:
        shape: (L+1, -1, D) for all layers, (-1, D) for one vector per token, (D,) for one vector per
            sentence; -1 stands for the number of tokens.
        dtype: Type of the numbers in the file.
    """

    shape: tuple[int, ...]
    dtype: Literal["float32", "float16"]

    def num_values(self, num_tokens: int) -> int:
        """Return how many numbers a row has.

        >>> Layout(shape=(3, -1, 4), dtype="float32").num_values(2)
        24
        """
        return math.prod(num_tokens if size == -1 else size for size in self.shape)


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredSentence:
    """One sentence read from a vector file. What the file does not hold is None.

    Attributes:
        text: The sentence.
        tokens: Its tokens.
        offsets: Start and end of each token in `text`.
        layers: (L+1, T, D) if the file holds all layers.
        vectors: (T, D) if the file holds one vector per token, (D,) if it holds one per sentence.
    """

    text: str | None
    tokens: list[str] | None
    offsets: list[tuple[int, int]] | None
    layers: FloatArray | None
    vectors: FloatArray | None

    @classmethod
    def of(
        cls,
        array: FloatArray,
        text: str | None,
        tokens: list[str] | None = None,
        offsets: list[tuple[int, int]] | None = None,
    ) -> "StoredSentence":
        """Make a sentence of an array of any of the three shapes.

        Raises:
            ValueError: It has another shape, does not hold floats, or does not fit the tokens.
        """
        if array.dtype.kind != "f" or array.ndim not in (1, 2, 3):
            raise ValueError(f"expected vectors, found {array.dtype} of shape {list(array.shape)}")
        if tokens is not None and array.shape[-2] != len(tokens):
            raise ValueError(f"{len(tokens)} tokens have {array.shape[-2]} vectors")
        layers, vectors = (array, None) if array.ndim == 3 else (None, array)
        return cls(text=text, tokens=tokens, offsets=offsets, layers=layers, vectors=vectors)
