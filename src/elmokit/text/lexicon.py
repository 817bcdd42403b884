"""Lexicons of characters and words, as the models of ELMoForManyLangs have them.

A token is read as Unicode characters, not bytes; the lexicon gives each character its id.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from elmokit.errors import DataError

_BOUNDARIES = ("<bos>", "<eos>")
_UNKNOWN = "<oov>"
_PAD = "<pad>"
# The names are swapped in the published models: a word begins with "end of word".
_BEGIN_WORD = "<eow>"
_END_WORD = "<bow>"
_CHARACTERS = (*_BOUNDARIES, _UNKNOWN, _PAD, _BEGIN_WORD, _END_WORD)


class Lexicon:
    """The ids of a model's characters and, if it has word vectors, of its words.

    Args:
        characters: The id of each character and of each mark such as `<bos>`.
        words: The id of each word, or None.

    Raises:
        DataError: A mark is missing.

    Attributes:
        boundaries: The tokens that stand for the beginning and the end of a sentence.

    Example:
        >>> marks = ("<bos>", "<eos>", "<oov>", "<pad>", "<bow>", "<eow>")
        >>> lexicon = Lexicon({"a": 0} | {mark: number for number, mark in enumerate(marks, start=1)}, None)
        >>> lexicon.spell(["ab", "<bos>"], max_characters=5)[0]
        array([[6, 0, 3, 5, 4],
               [6, 1, 5, 4, 4]])
    """

    boundaries = _BOUNDARIES

    def __init__(self, characters: Mapping[str, int], words: Mapping[str, int] | None) -> None:
        self.characters = dict(characters)
        self.words = None if words is None else dict(words)
        missing = [mark for mark in _CHARACTERS if mark not in self.characters]
        if missing:
            raise DataError(f"the lexicon of {len(characters)} characters has no {', '.join(missing)}")
        if self.words is not None and _UNKNOWN not in self.words:
            raise DataError(f"the lexicon of {len(self.words)} words has no {_UNKNOWN}")

    def spell(
        self, tokens: Sequence[str], *, max_characters: int
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return the character ids of tokens.

        Args:
            tokens: The tokens; only the first `max_characters - 2` characters of each are used.
            max_characters: Length C of a row, including the two word marks.

        Returns:
            The ids (n, C), and the number of ids (n,) in each row that are not padding.
        """
        ids, room = self.characters, max_characters - 2
        matrix = np.full((len(tokens), max_characters), ids[_PAD])  # (n, C)
        used = np.empty(len(tokens), np.intp)  # (n,)
        unknown, begin, end = ids[_UNKNOWN], ids[_BEGIN_WORD], ids[_END_WORD]
        for number, token in enumerate(tokens):
            known = [ids.get(character, unknown) for character in token[:room]]
            row = [begin, *([ids[token]] if token in _BOUNDARIES else known), end]
            matrix[number, : len(row)] = row
            used[number] = len(row)
        return matrix, used

    def word_ids(self, tokens: Sequence[str], *, max_characters: int) -> npt.NDArray[np.intp]:
        """Return the word ids (n,) of tokens, each truncated to `max_characters - 2` characters."""
        assert self.words is not None
        unknown = self.words[_UNKNOWN]
        return np.array([self.words.get(token[: max_characters - 2], unknown) for token in tokens], np.intp)
