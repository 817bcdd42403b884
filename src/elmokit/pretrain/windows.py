"""Windows of text: for every row the next T inputs and targets of both directions.

A row is a stream of sentences. Of `<S> a b </S>` the forward direction reads `<S> a b` and is to say
`a b </S>`; the backward direction reads `</S> b a` and is to say `b a <S>`. Both have as many places, so one
count of places serves both, and a window of a row holds (but for its ends) the same sentences in both.

Everything is a function of the step number: to resume is to go on counting.

Shapes: T steps, B rows, U distinct types.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from elmokit.errors import DataError

Order = Literal["document", "sentence"]
Ids = NDArray[np.int64]


class TokenShard(Protocol):
    """Sentences one after another: type ids (n,), and where each sentence starts (sentences + 1,)."""

    @property
    def tokens(self) -> NDArray[np.int32]: ...  # noqa: D102
    @property
    def starts(self) -> NDArray[np.int64]: ...  # noqa: D102


@dataclass(frozen=True)
class Window:
    """T places of B rows in both directions (0 forward, 1 backward).

    Attributes:
        types: (U,) the distinct type ids of the inputs.
        inputs: (2, T, B) indices into `types`.
        targets: (2, T, B) type ids.
        starts: (T, B) whether a sentence (or the row) starts at this place, in both directions.
    """

    types: Ids
    inputs: Ids
    targets: Ids
    starts: NDArray[np.bool_]


class Windows:
    """The windows of a corpus, by step.

    In document order row r reads on from r/B of the way through the corpus, shifted anew in each pass; in
    sentence order sentences are shuffled in each pass.

    Args:
        shards: the corpus.
        rows: B of all processes together.
        steps: T.
        order: see above.
        seed: of shifts and shuffles.
        lowercase: chance that a sentence is read in lower case; what is to be said stays as it is.
        lowercase_ids: (types,) for each type that of its spelling in lower case.
    """

    def __init__(
        self,
        shards: Sequence[TokenShard],
        *,
        rows: int,
        steps: int,
        order: Order,
        seed: int,
        lowercase: float = 0.0,
        lowercase_ids: Ids | None = None,
    ) -> None:
        self._tokens = [shard.tokens for shard in shards]
        firsts = np.cumsum([0, *(len(tokens) for tokens in self._tokens)])  # (shards + 1,)
        self._first_tokens: Ids = firsts
        starts = [shard.starts[:-1] + first for shard, first in zip(shards, firsts[:-1], strict=True)]
        self._starts: Ids = np.concatenate([*starts, firsts[-1:]])  # (sentences + 1,)
        self._rows, self._steps, self._order, self._seed = rows, steps, order, seed
        self._lowercase, self._lowercase_ids = lowercase, lowercase_ids
        self.places = int(firsts[-1]) - (len(self._starts) - 1)
        self.per_pass = self.places // (rows * steps)
        if not self.per_pass:
            raise DataError(
                f"the corpus has {self.places} words and sentence ends, one batch takes {rows} rows × "
                f"{steps} = {rows * steps}; use more text or a smaller batch"
            )
        self._pass = -1

    def __call__(self, step: int, rows: slice = slice(None)) -> Window:
        """The window of this step, or some rows of it."""
        number, within = divmod(step, self.per_pass)
        if number != self._pass:
            self._begin(number)
        row = np.arange(self._rows)[rows]  # (B,)
        place = within * self._steps + np.arange(self._steps)[:, None] + row * (self.per_pass * self._steps)
        place = (place + self._shift) % self.places  # (T, B)
        index = np.searchsorted(self._ends, place, side="right")  # the sentence, as counted in this pass
        sentence = index if self._permutation is None else self._permutation[index]
        offset = place - np.where(index > 0, self._ends[index - 1], 0)
        first, last = self._starts[sentence], self._starts[sentence + 1] - 1
        tokens = self._read(np.stack([first + offset, last - offset, first + offset + 1, last - offset - 1]))
        read = tokens[:2]
        if self._lowercase_ids is not None:
            read = np.where(self._lowered[sentence], self._lowercase_ids[read], read)
        types, inputs = np.unique(read, return_inverse=True)
        starts = offset == 0
        starts[0] |= within == 0  # a row may begin a pass in the middle of a sentence
        return Window(types, inputs.reshape(read.shape), tokens[2:], starts)

    def _begin(self, number: int) -> None:
        """Make ready for a pass over the corpus."""
        random = np.random.default_rng([self._seed, number])
        lengths = np.diff(self._starts) - 1  # places of each sentence
        if self._order == "sentence":
            self._permutation: Ids | None = random.permutation(len(lengths))
            self._ends: Ids = np.cumsum(lengths[self._permutation])
            self._shift = 0
        else:
            self._permutation = None
            self._ends = np.cumsum(lengths)
            self._shift = int(random.integers(self.places))
        if self._lowercase_ids is not None:
            self._lowered = (
                np.random.default_rng([self._seed, number, 1]).random(len(lengths)) < self._lowercase
            )
        self._pass = number

    def _read(self, places: Ids) -> Ids:
        """The type ids that stand at these places of the corpus."""
        if len(self._tokens) == 1:
            return self._tokens[0][places].astype(np.int64)
        shard = np.searchsorted(self._first_tokens, places, side="right") - 1
        result = np.empty(places.shape, np.int64)
        for number in np.unique(shard):
            here = shard == number
            result[here] = self._tokens[number][places[here] - self._first_tokens[number]]
        return result
