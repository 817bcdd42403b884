"""From tokens to the character ids that the character CNN reads.

The ids are those of ELMo *training*: a token's UTF-8 bytes are the ids 0 to 255, five more mark
boundaries and padding. A row is `BEGIN_WORD, bytes, END_WORD, PAD, PAD, ...`. The ids of ELMo
*prediction*, as in the published tools, are these plus `PREDICTION_SHIFT`, and there a position without
a token is a row of zeros.
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
_WORD_MARKS = 2  # BEGIN_WORD and END_WORD share the row with the bytes


def character_ids(token: str, *, max_characters: int = 50) -> list[int]:
    """Spell one token as a row of training ids.

    `<S>` and `</S>`, exactly so written, become their one boundary id. Bytes beyond `max_characters - 2`
    are left out (ask `is_truncated`), even in the middle of a character; lone surrogates have no bytes.

    Args:
        token: The token.
        max_characters: Length C of the row, word marks included.

    Returns:
        C ids below `NUM_CHARACTERS`.

    Raises:
        ConfigError: `max_characters` leaves no room for a byte.

    Example:
        >>> character_ids("né", max_characters=7)
        [258, 110, 195, 169, 259, 260, 260]
        >>> character_ids("<S>", max_characters=5)
        [258, 256, 259, 260, 260]
    """
    ids: list[int] = character_matrix([token], max_characters=max_characters)[0].tolist()
    return ids


def character_matrix(tokens: Sequence[str], *, max_characters: int = 50) -> npt.NDArray[np.int32]:
    """Spell many tokens at once, each as `character_ids` does.

    Args:
        tokens: The tokens; a bare string is refused.
        max_characters: Length C of a row, word marks included.

    Returns:
        Ids of shape (len(tokens), C).

    Raises:
        ConfigError: `tokens` is a string, or `max_characters` leaves no room for a byte.

    Example:
        >>> character_matrix(["a", "</S>"], max_characters=4)
        array([[258,  97, 259, 260],
               [258, 257, 259, 260]], dtype=int32)
    """
    refuse_bare_string(tokens)
    room = _room(max_characters)
    spelt = [token.encode("utf-8", "ignore")[:room] for token in tokens]
    boundaries = [(row, _BOUNDARY_IDS[token]) for row, token in enumerate(tokens) if token in _BOUNDARY_IDS]
    for row, _ in boundaries:
        spelt[row] = b"\0"  # holds the place of the one id that is no byte
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
    """Count the ids of each row that are not padding: two word marks and the bytes kept.

    Args:
        matrix: Training ids of shape (n, C), from `character_matrix`.

    Returns:
        Counts of shape (n,).

    Example:
        >>> used_characters(character_matrix(["a", "bank", ""]))
        array([3, 6, 2])
    """
    counts: npt.NDArray[np.intp] = np.count_nonzero(matrix != PAD, axis=1)
    return counts


def is_truncated(token: str, *, max_characters: int = 50) -> bool:
    """Tell whether a token has more bytes than its row of character ids can hold.

    Example:
        >>> is_truncated("a" * 48), is_truncated("a" * 49)
        (False, True)
    """
    return len(token.encode("utf-8", "ignore")) > _room(max_characters)


def _room(max_characters: int) -> int:
    """Return the number of bytes of a token that are kept."""
    if max_characters <= _WORD_MARKS:
        raise ConfigError(
            f"max_characters is {max_characters}, expected at least {_WORD_MARKS + 1} "
            "(two word marks and a byte); the published models use 50"
        )
    return max_characters - _WORD_MARKS
