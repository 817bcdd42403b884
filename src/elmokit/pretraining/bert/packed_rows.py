"""Rows full of sequences, with the pieces to predict.

A row has T pieces. It begins with a sentence somewhere in the text and holds one sequence after another until
it is full; the last one is cut. A sequence never goes beyond its document:

    [CLS] A [SEP] B [SEP]     with next-sentence prediction: B follows A in the text, or half of the time
                              comes from another document (A then goes on in the next sequence)
    [CLS] A [SEP]             without, or where there is no room for two sentences

A sequence sees only itself: it has its own positions, and attention stays within it. A row follows from its
number alone, so resuming needs no state.

Shapes: B rows, T pieces of a row, m pieces to predict, n sequences with a label.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from elmokit.errors import ConfigError, DataError
from elmokit.pretraining.bert.bert_recipe import BertRecipe
from elmokit.pretraining.bert.word_pieces import CLS, MASK, PAD, SEP, SPECIAL_PIECES, Integers, PieceText

Ids = NDArray[np.int64]

_LEAST_ROOM = 4  # [CLS], two pieces, [SEP]
_TRIES = 20  # to find another document
_HIDDEN, _LEFT = 0.8, 0.1  # of the pieces to predict


@dataclass(frozen=True)
class RowBatch:
    """B rows.

    Attributes:
        ids: (B, T) pieces, as the model reads them.
        parts: (B, T) 0 for A, 1 for B (`token_type_ids`).
        positions: (B, T) within the sequence.
        sequences: (B, T) which sequence of the row; -1 for padding.
        masked: (m,) places to predict, as indices into (B · T).
        targets: (m,) their pieces.
        firsts: (n,) places of the [CLS] of sequences with a label.
        labels: (n,) 0 if B follows A, 1 if it does not.
    """

    ids: Ids
    parts: Ids
    positions: Ids
    sequences: Ids
    masked: Ids
    targets: Ids
    firsts: Ids
    labels: Ids

    def rows(self, first: int, last: int) -> "RowBatch":
        """Return some of the rows."""
        length = self.ids.shape[1]
        masked, labelled = (
            (places >= first * length) & (places < last * length) for places in (self.masked, self.firsts)
        )
        span = slice(first, last)
        return RowBatch(
            ids=self.ids[span],
            parts=self.parts[span],
            positions=self.positions[span],
            sequences=self.sequences[span],
            masked=self.masked[masked] - first * length,
            targets=self.targets[masked],
            firsts=self.firsts[labelled] - first * length,
            labels=self.labels[labelled],
        )


@dataclass
class _Row:
    """A row that is being filled."""

    ids: Ids
    parts: Ids
    positions: Ids
    sequences: Ids
    used: int = 0
    firsts: list[int] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)

    @property
    def room(self) -> int:
        return len(self.ids) - self.used

    def add(self, a: Integers, b: Integers | None, label: int | None) -> None:
        """Add a sequence."""
        ids: Ids = np.concatenate([np.array([CLS]), a, *([] if b is None else [np.array([SEP]), b]), [SEP]])
        span = slice(self.used, self.used + len(ids))
        self.ids[span] = ids
        self.parts[span] = np.arange(len(ids)) >= len(a) + 2
        self.positions[span] = np.arange(len(ids))
        self.sequences[span] = self.sequences[: self.used].max(initial=-1) + 1
        if label is not None:
            self.firsts.append(self.used)
            self.labels.append(label)
        self.used += len(ids)


class PackedRows:
    """The rows of a text, by step; in each pass they begin elsewhere and come in another order.

    Args:
        text: The text.
        recipe: How it is read.
        continues: (V,) whether a piece continues a word.

    Raises:
        DataError: The text is shorter than a batch.
        ConfigError: There is only one document, or none with two sentences, for next-sentence prediction.
    """

    def __init__(self, text: PieceText, recipe: BertRecipe, continues: NDArray[np.bool_]) -> None:
        self._text, self._recipe, self._continues = text, recipe, continues
        count, rows = len(text.pieces), recipe.batch
        self.per_pass = count // (rows * recipe.length)
        if not self.per_pass:
            raise DataError(
                f"the corpus has {count} pieces, one batch takes {rows} rows × {recipe.length} = "
                f"{rows * recipe.length}; use more text or a smaller batch"
            )
        documents = np.diff(text.documents)
        if recipe.nsp and (len(documents) < 2 or documents.max() < 2):
            raise ConfigError(
                "next-sentence prediction needs several documents of two sentences or more (in a text file, "
                f"blank lines are between documents), found {len(documents)}; use nsp=False"
            )
        self._pass = -1

    def __call__(self, step: int, rows: slice = slice(None)) -> RowBatch:
        """Return the rows of a step, or some of them."""
        number, within = divmod(step, self.per_pass)
        if number != self._pass:
            random = np.random.default_rng([self._recipe.seed, number])
            self._shift = int(random.integers(len(self._text.pieces)))
            self._order = random.permutation(self.per_pass * self._recipe.batch)
            self._pass = number
        batch = self._recipe.batch
        numbers = self._order[within * batch : (within + 1) * batch][rows]
        return _joined([self._masked_row(int(row)) for row in numbers])

    def _masked_row(self, number: int) -> tuple[_Row, Ids, Ids]:
        """Return a row, the places to predict and their pieces."""
        random = np.random.default_rng([self._recipe.seed, self._pass, number])
        row = self._row((number * self._recipe.length + self._shift) % len(self._text.pieces), random)
        places = self._places(row.ids, random)
        targets = row.ids[places]
        chance = random.random(len(places))
        others = random.integers(len(SPECIAL_PIECES), len(self._continues), len(places))
        row.ids[places] = np.where(chance < _HIDDEN, MASK, np.where(chance < 1 - _LEFT, others, targets))
        return row, places, targets

    def _row(self, place: int, random: np.random.Generator) -> _Row:
        length = self._recipe.length
        nothing = np.full(length, -1)
        row = _Row(np.full(length, PAD), np.zeros_like(nothing), np.zeros_like(nothing), nothing)
        sentence = self._sentence(place)
        start, end = self._text.sentences[sentence : sentence + 2]
        if end - start <= length:  # of a longer one no part would ever be read but the first
            place = int(start)
        while row.room >= _LEAST_ROOM:
            place = self._add_sequence(row, place, random) % len(self._text.pieces)
        return row

    def _sentence(self, place: int) -> int:
        """Return the sentence of a piece."""
        return int(np.searchsorted(self._text.sentences, place, side="right")) - 1

    def _document(self, sentence: int) -> int:
        return int(np.searchsorted(self._text.documents, sentence, side="right")) - 1

    def _add_sequence(self, row: _Row, place: int, random: np.random.Generator) -> int:
        """Add the sequence that begins at a place of the text; return where the next one begins."""
        text, document = self._text, self._document(self._sentence(place))
        end = int(text.sentences[text.documents[document + 1]])
        cuts: Ids = np.zeros(0, np.int64)
        if self._recipe.nsp:
            cuts = self._cuts(place, min(end, place + row.room - 3))
        if len(cuts):
            cut = int(random.choice(cuts))
            follows = random.random() < 0.5
            other = cut if follows else self._elsewhere(document, random)
            if other is not None:
                limit = int(text.sentences[text.documents[self._document(self._sentence(other)) + 1]])
                last = min(limit, other + row.room - 3 - (cut - place))
                row.add(text.pieces[place:cut], text.pieces[other:last], int(not follows))
                return last if follows else cut
        last = min(end, place + row.room - 2)
        row.add(text.pieces[place:last], None, None)
        return last

    def _cuts(self, place: int, last: int) -> Ids:
        """Return the sentence boundaries inside a part of the text."""
        first, end = np.searchsorted(self._text.sentences, [place + 1, last])
        return np.asarray(self._text.sentences[first:end])

    def _elsewhere(self, document: int, random: np.random.Generator) -> int | None:
        """Return where a random sentence of another document begins; None if none was found."""
        for _ in range(_TRIES):
            sentence = self._sentence(int(random.integers(len(self._text.pieces))))
            if self._document(sentence) != document:
                return int(self._text.sentences[sentence])
        return None

    def _places(self, ids: Ids, random: np.random.Generator) -> Ids:
        """Choose the places of a row to predict."""
        places = np.flatnonzero(ids >= len(SPECIAL_PIECES))
        wanted = max(1, round(self._recipe.masked * len(places)))
        if not self._recipe.whole_words:
            return np.sort(random.permutation(places)[:wanted])
        word = np.cumsum(~self._continues[ids[places]] | (np.diff(places, prepend=-1) > 1))
        order = random.permutation(np.unique(word))
        sizes = np.bincount(word)[order]
        nearest = int((np.cumsum(sizes) - sizes / 2 <= wanted).sum())
        return places[np.isin(word, order[: max(1, nearest)])]


def _joined(rows: list[tuple[_Row, Ids, Ids]]) -> RowBatch:
    """Put rows together; their places become indices into all of them."""
    length = len(rows[0][0].ids)

    def flat(parts: Iterator[Ids]) -> Ids:
        return np.concatenate([part + n * length for n, part in enumerate(parts)])

    arrays = {
        name: np.stack([getattr(row, name) for row, _, _ in rows])
        for name in ("ids", "parts", "positions", "sequences")
    }
    return RowBatch(
        **arrays,
        masked=flat(places for _, places, _ in rows),
        targets=np.concatenate([targets for _, _, targets in rows]),
        firsts=flat(np.asarray(row.firsts, np.int64) for row, _, _ in rows),
        labels=np.concatenate([np.asarray(row.labels, np.int64) for row, _, _ in rows]),
    )
