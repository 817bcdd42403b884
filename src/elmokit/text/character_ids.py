"""The character ids that the character CNN reads.

These are the ids of ELMo *training*: the UTF-8 bytes of a token are the ids 0 to 255, and five more mark
boundaries and padding. A row is `BEGIN_WORD, bytes, END_WORD, PAD, PAD, ...`. The ids of ELMo *prediction*,
as in the published tools, are these plus `PREDICTION_SHIFT`; there, a position without a token is all zeros.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from elmokit.errors import ConfigError
from elmokit.text.tokens import refuse_bare_string

BEGIN_SENTENCE = 256
END_SENTENCE = 257
BEGIN_WORD = 258
END_WORD = 259
PAD = 260
NUM_CHARACTERS = 261
PREDICTION_SHIFT = 1

BEGIN_SENTENCE_TOKEN = "<S>"
END_SENTENCE_TOKEN = "</S>"

_BOUNDARY_IDS = {BEGIN_SENTENCE_TOKEN: BEGIN_SENTENCE, END_SENTENCE_TOKEN: END_SENTENCE}
_WORD_MARKS = 2  # BEGIN_WORD and END_WORD


def character_matrix(tokens: Sequence[str], *, max_characters: int = 50) -> npt.NDArray[np.int32]:
    """Return the training ids of tokens.

    The tokens `<S>` and `</S>` become one boundary id. Bytes beyond `max_characters - 2` are dropped, even in
    the middle of a character (see `is_truncated`); lone surrogates have no bytes.

    Args:
        tokens: The tokens.
        max_characters: Length C of a row, including the two word marks.

    Returns:
        Ids of shape (len(tokens), C).

    Raises:
        ConfigError: `tokens` is a string, or `max_characters` leaves no room for a byte.

    Example:
        >>> character_matrix(["né", "</S>"], max_characters=6)
        array([[258, 110, 195, 169, 259, 260],
               [258, 257, 259, 260, 260, 260]], dtype=int32)
    """
    refuse_bare_string(tokens)
    room = _room(max_characters)
    spelt = [token.encode("utf-8", "ignore")[:room] for token in tokens]
    boundaries = [(row, _BOUNDARY_IDS[token]) for row, token in enumerate(tokens) if token in _BOUNDARY_IDS]
    for row, _ in boundaries:
        spelt[row] = b"\0"  # a placeholder for the boundary id, which is not a byte
    lengths = np.fromiter(map(len, spelt), dtype=np.intp, count=len(spelt))
    matrix = np.full((len(spelt), max_characters), PAD, dtype=np.int32)  # (n, C)
    matrix[:, 0] = BEGIN_WORD
    is_byte = np.arange(room) < lengths[:, None]  # (n, C-2)
    matrix[:, 1:-1][is_byte] = np.frombuffer(b"".join(spelt), dtype=np.uint8)
    matrix[np.arange(len(spelt)), lengths + 1] = END_WORD
    for row, boundary in boundaries:
        matrix[row, 1] = boundary
    return matrix


def used_characters(matrix: npt.NDArray[np.int32]) -> npt.NDArray[np.intp]:
    """Count the ids (n,) that are not padding in each row of a `character_matrix` (n, C).

    Example:
        >>> used_characters(character_matrix(["a", "bank", ""]))
        array([3, 6, 2])
    """
    counts: npt.NDArray[np.intp] = np.count_nonzero(matrix != PAD, axis=1)
    return counts


def is_truncated(token: str, *, max_characters: int = 50) -> bool:
    """Return whether a token has more bytes than its row of character ids can hold.

    Example:
        >>> is_truncated("a" * 48), is_truncated("a" * 49)
        (False, True)
    """
    return len(token.encode("utf-8", "ignore")) > _room(max_characters)


def _room(max_characters: int) -> int:
    """Return how many bytes of a token are kept."""
    if max_characters <= _WORD_MARKS:
        raise ConfigError(
            f"max_characters is {max_characters}, expected at least {_WORD_MARKS + 1} "
            "(two word marks and a byte); the published models use 50"
        )
    return max_characters - _WORD_MARKS
