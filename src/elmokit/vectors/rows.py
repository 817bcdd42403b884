"""What a row of a file of embeddings holds. L layers, T tokens, D = 2P dimensions of a vector."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One sentence with its vectors, shaped as the file's `Layout` says."""

    text: str
    tokens: list[str]
    offsets: list[tuple[int, int]]
    vectors: FloatArray


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The shape and type of every row's vectors.

    Attributes:
        shape: (L+1, -1, D) for all layers, (-1, D) for one vector a token, (D,) for one vector a sentence;
            -1 stands for the number of tokens.
        dtype: Type of the numbers in the file.
    """

    shape: tuple[int, ...]
    dtype: Literal["float32", "float16"]

    def num_values(self, num_tokens: int) -> int:
        """Count the numbers of a row.

        >>> Layout(shape=(3, -1, 4), dtype="float32").num_values(2)
        24
        """
        return math.prod(num_tokens if size == -1 else size for size in self.shape)


def batches(rows: Iterator[Row], max_bytes: int) -> Iterator[list[Row]]:
    """Group rows in order; a batch ends with the row that brings it to `max_bytes` of vectors and text."""
    batch: list[Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += row.vectors.nbytes + len(row.text) + 1
        if size >= max_bytes:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
