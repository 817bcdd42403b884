"""Lexicons of characters and words, as ELMoForManyLangs' models bring them.

A token is its characters, not its bytes, each with a number of the lexicon's own.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from elmokit.errors import DataError

BEGIN_SENTENCE_TOKEN = "<bos>"
END_SENTENCE_TOKEN = "<eos>"

_UNKNOWN = "<oov>"
_PAD = "<pad>"
# The names are the wrong way round, in training and ever since: a word begins with "end of word".
_BEGIN_WORD = "<eow>"
_END_WORD = "<bow>"
_CHARACTERS = (BEGIN_SENTENCE_TOKEN, END_SENTENCE_TOKEN, _UNKNOWN, _PAD, _BEGIN_WORD, _END_WORD)


class Lexicon:
    """The numbers of a model's characters and, if it has word vectors, of its words.

    Args:
        characters: the number of each character and mark.
        words: the number of each word, or None.

    Raises:
        DataError: a mark is missing.

    Example:
        >>> marks = ("<bos>", "<eos>", "<oov>", "<pad>", "<bow>", "<eow>")
        >>> lexicon = Lexicon({"a": 0} | {mark: number for number, mark in enumerate(marks, start=1)}, None)
        >>> lexicon.spell(["ab", "<bos>"], max_characters=5)[0]
        array([[6, 0, 3, 5, 4],
               [6, 1, 5, 4, 4]])
    """

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
        """The characters of tokens, marks among them.

        Args:
            tokens: the tokens; of each the first `max_characters - 2` characters count.
            max_characters: C.

        Returns:
            Ids (n, C), and how many (n,) of each row are not padding.
        """
        ids, room = self.characters, max_characters - 2
        matrix = np.full((len(tokens), max_characters), ids[_PAD])  # (n, C)
        used = np.empty(len(tokens), np.intp)  # (n,)
        unknown, begin, end = ids[_UNKNOWN], ids[_BEGIN_WORD], ids[_END_WORD]
        for number, token in enumerate(tokens):
            mark = token in (BEGIN_SENTENCE_TOKEN, END_SENTENCE_TOKEN)
            inside = [ids[token]] if mark else [ids.get(character, unknown) for character in token[:room]]
            row = [begin, *inside, end]
            matrix[number, : len(row)] = row
            used[number] = len(row)
        return matrix, used

    def word_ids(self, tokens: Sequence[str], *, max_characters: int) -> npt.NDArray[np.intp]:
        """The numbers (n,) of tokens among the words; a token is looked up as far as it is spelt."""
        assert self.words is not None
        unknown = self.words[_UNKNOWN]
        return np.array([self.words.get(token[: max_characters - 2], unknown) for token in tokens], np.intp)
