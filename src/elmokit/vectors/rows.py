"""Rows of vector files, as they are written and as they are read. T tokens, D = 2P dimensions of a vector."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.floating[Any]]
Unit: TypeAlias = Literal["token", "sentence", "use"]  # what a vector of the file is of
_SHOWN = 60  # characters of the text in `repr`


@dataclass(frozen=True, kw_only=True)
class Row:
    """One sentence to write, or one use of a word, with vectors shaped as the file's `Layout` says.

    Attributes:
        text: The sentence.
        tokens: Its tokens; of a use the word as it is spelt there.
        offsets: Start and end of each token in `text`.
        vectors: The numbers.
        line: The number of the sentence in the text, from 1; 0 means that of the row.
    """

    text: str
    tokens: list[str]
    offsets: list[tuple[int, int]]
    vectors: FloatArray
    line: int = 0


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The shape and type of every row's vectors.

    Attributes:
        shape: (-1, D) for one vector per token, where -1 stands for the number of tokens; (D,) for one vector
            per sentence or use; with another axis in front, (n, -1, D) or (n, D), for several layers.
        dtype: Type of the numbers in the file.
        layers: The numbers of several layers; 0, 1, … if it is empty.
        uses: Whether rows hold the uses of a word in place of the tokens of the sentence; each use then has a
            row of its own in the file.
    """

    shape: tuple[int, ...]
    dtype: Literal["float32", "float16"]
    layers: tuple[int, ...] = ()
    uses: bool = False

    @property
    def unit(self) -> Unit:
        """Return what each vector of the file is of."""
        if self.uses:
            return "use"
        return "token" if -1 in self.shape else "sentence"

    @property
    def file_shape(self) -> tuple[int, ...]:
        """Return the shape of the vectors of a row of the file: that of one use, if the rows are uses."""
        return tuple(size for size in self.shape if size != -1) if self.uses else self.shape

    @property
    def several(self) -> bool:
        """Return whether a token, sentence or use has a vector for each of several layers."""
        return len(self.shape) == (3 if -1 in self.shape else 2)

    def names(self) -> list[str]:
        """Return the name of each vector of a token, sentence or use.

        >>> Layout(shape=(2, -1, 4), dtype="float32", layers=(0, 2)).names()
        ['layer_0', 'layer_2']
        """
        if self.several:
            return [f"layer_{layer}" for layer in self.layers or range(self.shape[0])]
        return ["vectors" if self.unit == "token" else "vector"]

    def num_values(self, num_tokens: int) -> int:
        """Return how many numbers a row has.

        >>> Layout(shape=(3, -1, 4), dtype="float32").num_values(2)
        24
        """
        return math.prod(num_tokens if size == -1 else size for size in self.shape)


def file_rows(rows: Iterable[Row], layout: Layout) -> Iterator[Row]:
    """Yield the rows of the file: each use of a word as a row of its own, sentences as they are; numbered."""
    for number, row in enumerate(rows, start=1):
        line = row.line or number
        if not layout.uses:
            yield Row(text=row.text, tokens=row.tokens, offsets=row.offsets, vectors=row.vectors, line=line)
            continue
        for at, (word, span) in enumerate(zip(row.tokens, row.offsets, strict=True)):
            vectors = row.vectors[..., at, :]
            yield Row(text=row.text, tokens=[word], offsets=[span], vectors=vectors, line=line)


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredSentence:
    """One sentence, or one use of a word, read from a vector file. What the file does not hold is None.

    Attributes:
        text: The sentence.
        tokens: Its tokens; of a use the word as it is spelt there.
        offsets: Start and end of each token in `text`.
        layers: (n, T, D) if the file holds several layers; (n, D) if it holds sentences or uses.
        vectors: (T, D) if the file holds one vector per token, (D,) if it holds one per sentence or use.
        line: Number of the sentence in the text, from 1.
        id: Its id in the table that it is from.
        error: Why it has no vectors, if it could not be embedded.
    """

    text: str | None
    tokens: list[str] | None
    offsets: list[tuple[int, int]] | None
    layers: FloatArray | None
    vectors: FloatArray | None
    line: int | None = None
    id: str | None = None
    error: str | None = None

    def __repr__(self) -> str:
        array = self.vectors if self.layers is None else self.layers
        text = self.text if self.text is None or len(self.text) <= _SHOWN else f"{self.text[:_SHOWN]}…"
        shape = None if array is None else array.shape
        return f"StoredSentence({text!r}, line {self.line}, vectors of shape {shape})"

    @classmethod
    def of(
        cls,
        array: FloatArray | None,
        fields: Mapping[str, Any],
        *,
        unit: Unit = "token",
        several: bool | None = None,
    ) -> "StoredSentence":
        """Make a sentence of an array.

        Args:
            array: Of one of the shapes of a `Layout`; None for a sentence that could not be embedded.
            fields: What is known of the other attributes.
            unit: What a vector is of.
            several: Whether the first axis is that of the layers; by default in arrays of three axes.

        Raises:
            ValueError: It has another shape, does not hold floats, or does not fit the tokens.
        """
        known = {name: fields.get(name) for name in ("text", "tokens", "offsets", "line", "id", "error")}
        known["offsets"] = known["offsets"] and [(start, end) for start, end in known["offsets"]]
        if array is None:
            return cls(**known, layers=None, vectors=None)
        tokens = fields.get("tokens")
        several = array.ndim == 3 if several is None else several
        axes = 1 + several + (unit == "token")
        if array.dtype.kind != "f" or array.ndim != axes:
            raise ValueError(f"expected vectors, found {array.dtype} of shape {list(array.shape)}")
        if tokens is not None and unit == "token" and array.shape[-2] != len(tokens):
            raise ValueError(f"{len(tokens)} tokens have {array.shape[-2]} vectors")
        return cls(**known, layers=array if several else None, vectors=None if several else array)
