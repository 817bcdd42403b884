"""Windows of text: for every row the next T inputs and targets of both directions.

A row is a stream of texts, each a sentence or several joined. Of `<S> a b </S>` the forward direction reads
`<S> a b` and predicts `a b </S>`; the backward direction reads `</S> b a` and predicts `b a <S>`. Both have
the same number of positions ("places"), so a window of a row covers the same texts in both directions, apart
from its ends.

A window follows from the number of its step alone, so resuming needs no state.

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
    """Consecutive sentences: type ids (n,), and where each sentence starts (sentences + 1,)."""

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

    In document order, row r reads from r/B of the way through the corpus, with a new shift in each pass; in
    sentence order, sentences are shuffled in each pass.

    Args:
        shards: The corpus.
        rows: B of all processes together.
        steps: T.
        order: See above.
        seed: Of shifts and shuffles.
        join: Share of sentences that continue the text of the sentence before, without a boundary between
            them; only in document order.
        lowercase: Chance that a text is read in lower case; the words to predict stay as they are.
        lowercase_ids: (types,) For each type, that of its spelling in lower case.
    """

    def __init__(
        self,
        shards: Sequence[TokenShard],
        *,
        rows: int,
        steps: int,
        order: Order,
        seed: int,
        join: float = 0.0,
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
        self._joined = round(join * (len(self._starts) - 2))  # sentences; never the first
        self.places = int(firsts[-1]) - (len(self._starts) - 1) - self._joined
        self.per_pass = self.places // (rows * steps)
        if not self.per_pass:
            raise DataError(
                f"the corpus has {self.places} words and sentence ends, one batch takes {rows} rows × "
                f"{steps} = {rows * steps}; use more text or a smaller batch"
            )
        self._pass = -1

    def __call__(self, step: int, rows: slice = slice(None)) -> Window:
        """Return the window of a step, or some rows of it."""
        number, within = divmod(step, self.per_pass)
        if number != self._pass:
            self._begin(number)
        row = np.arange(self._rows)[rows]  # (B,)
        place = within * self._steps + np.arange(self._steps)[:, None] + row * (self.per_pass * self._steps)
        place = (place + self._shift) % self.places  # (T, B)
        text = np.searchsorted(self._text_starts, place, side="right") - 1
        start, end = self._text_starts[text], self._text_starts[text + 1]
        mirrored = start + end - place
        tokens = self._read(self._where(np.stack([place, mirrored, place + 1, mirrored - 1]), end))
        read = tokens[:2]
        if self._lowercase_ids is not None:
            read = np.where(self._lowered[text], self._lowercase_ids[read], read)
        types, inputs = np.unique(read, return_inverse=True)
        starts = place == start
        starts[0] |= within == 0  # a row may begin a pass in the middle of a text
        return Window(types, inputs.reshape(read.shape), tokens[2:], starts)

    def _begin(self, number: int) -> None:
        """Prepare a pass over the corpus."""
        random = np.random.default_rng([self._seed, number])
        words = np.diff(self._starts) - 2  # of each sentence
        begins = np.ones(len(words), dtype=np.int64)  # 1 for the first sentence of a text, else 0
        begins[1 : 1 + self._joined] = 0
        begins[1:] = np.random.default_rng([self._seed, number, 2]).permutation(begins[1:])
        self._permutation: Ids | None = None
        self._shift = 0
        if self._order == "sentence":
            self._permutation = random.permutation(len(words))
            words = words[self._permutation]
        else:
            self._shift = int(random.integers(self.places))
        self._begins: Ids = begins
        self._ends: Ids = np.cumsum(words + begins)  # a place for each word, and for `<S>`
        self._text_starts: Ids = np.append((self._ends - words - begins)[begins == 1], self.places)
        if self._lowercase_ids is not None:
            chance = np.random.default_rng([self._seed, number, 1]).random(len(self._text_starts) - 1)
            self._lowered = chance < self._lowercase
        self._pass = number

    def _where(self, places: Ids, end: Ids) -> Ids:
        """Return the position in the corpus of the token at each place; the `end` of a text is its `</S>`."""
        is_end = places == end
        index = np.searchsorted(self._ends, places - is_end, side="right")  # the sentence, in this pass
        sentence = index if self._permutation is None else self._permutation[index]
        offset = places - np.where(index > 0, self._ends[index - 1], 0)
        where: Ids = self._starts[sentence] + offset + 1 - self._begins[index]
        where[is_end] = self._starts[sentence + 1][is_end] - 1
        return where

    def _read(self, places: Ids) -> Ids:
        """Return the type ids at these positions of the corpus."""
        if len(self._tokens) == 1:
            return self._tokens[0][places].astype(np.int64)
        shard = np.searchsorted(self._first_tokens, places, side="right") - 1
        result = np.empty(places.shape, np.int64)
        for number in np.unique(shard):
            here = shard == number
            result[here] = self._tokens[number][places[here] - self._first_tokens[number]]
        return result
