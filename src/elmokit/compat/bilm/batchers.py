"""bilm-tf's batchers. Shapes: B sentences, T tokens of the longest, C characters of a token."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from elmokit.compat.padded_bilm import Ids, spell, stack_padded
from elmokit.errors import DataError
from elmokit.text import (
    BEGIN_SENTENCE_TOKEN,
    END_SENTENCE_TOKEN,
    PREDICTION_SHIFT,
    Vocabulary,
    refuse_bare_string,
)


class Batcher:
    """Converts sentences to character ids.

    Args:
        lm_vocab_file: accepted for old programs; has no effect. `<S>` and `</S>` given as tokens are read as
            the boundaries, whether or not a vocabulary has them.
        max_token_length: C.
    """

    def __init__(self, lm_vocab_file: str | Path | None, max_token_length: int) -> None:
        self._max_token_length = max_token_length

    def batch_sentences(self, sentences: Sequence[Sequence[str]]) -> Ids:
        """Return ids (B, T+2, C) of tokens and boundaries, with rows of zeros after shorter sentences.

        Example:
            >>> Batcher(None, 5).batch_sentences([["a"], []])[:, :, 1].tolist()
            [[257, 98, 258], [257, 258, 0]]
        """
        length = self._max_token_length
        return stack_padded([spell(_bounded(one), length) for one in sentences], (length,), np.int64)


class TokenBatcher:
    """Converts sentences to rows of a vocabulary, for token vectors of `dump_token_embeddings`.

    Args:
        lm_vocab_file: the vocabulary of those vectors.

    Raises:
        DataError: it has no `<S>` or `</S>`; later, a word is unknown and it has no `<UNK>`.
    """

    def __init__(self, lm_vocab_file: str | Path) -> None:
        self._vocabulary = bounded_vocabulary(lm_vocab_file)

    def batch_sentences(self, sentences: Sequence[Sequence[str]]) -> Ids:
        """Return ids (B, T+2) of tokens and boundaries, 0 where there is no token."""
        rows = [[self._vocabulary.id(token) for token in _bounded(one)] for one in sentences]
        return stack_padded([np.array(row, np.int64) + PREDICTION_SHIFT for row in rows], (), np.int64)


def bounded_vocabulary(path: str | Path) -> Vocabulary:
    """Read a vocabulary; raise a DataError if it lacks a sentence boundary."""
    vocabulary = Vocabulary.load(path)
    missing = [token for token in (BEGIN_SENTENCE_TOKEN, END_SENTENCE_TOKEN) if token not in vocabulary]
    if missing:
        raise DataError(
            f"{path}: has no {' and no '.join(missing)}, which stand around every sentence; add them"
        )
    return vocabulary


def _bounded(sentence: Sequence[str]) -> list[str]:
    refuse_bare_string(sentence)
    return [BEGIN_SENTENCE_TOKEN, *sentence, END_SENTENCE_TOKEN]
