"""The vocabulary file: one token per line, the line number is the id."""

import gzip
import lzma
from collections.abc import Iterable
from pathlib import Path

from elmokit.errors import DataError
from elmokit.text.character_ids import BEGIN_SENTENCE_TOKEN, END_SENTENCE_TOKEN
from elmokit.text.lines import read_lines

UNKNOWN_TOKEN = "<UNK>"
SPECIAL_TOKENS = (BEGIN_SENTENCE_TOKEN, END_SENTENCE_TOKEN, UNKNOWN_TOKEN)

_NOT_A_TOKEN = "!!!MAXTERMID"  # a line of some old vocabulary files that all readers skip


class Vocabulary:
    """Tokens and their ids, which count rows of a softmax or of a table of word vectors.

    A token that stands on two lines keeps both rows, for the rows of the weights are numbered by line;
    its id is the later one, as in bilm-tf.

    Args:
        tokens: The tokens in the order of their ids.

    Example:
        >>> vocabulary = Vocabulary(["<S>", "</S>", "<UNK>", "bank"])
        >>> vocabulary.id("bank"), vocabulary.id("brook"), len(vocabulary), "brook" in vocabulary
        (3, 2, 4, False)
    """

    def __init__(self, tokens: Iterable[str]) -> None:
        self._tokens = tuple(tokens)
        self._ids = {token: number for number, token in enumerate(self._tokens)}

    @classmethod
    def load(cls, path: str | Path) -> "Vocabulary":
        """Read a vocabulary file, plain or compressed.

        White space around a token is stripped, the line `!!!MAXTERMID` is skipped without a number, and
        an empty line counts, all as in bilm-tf.

        Args:
            path: The file.

        Returns:
            The vocabulary.

        Raises:
            DataError: The file cannot be read as UTF-8 text.
        """
        tokens = (line.strip() for line in read_lines(path))
        return cls(token for token in tokens if token != _NOT_A_TOKEN)

    def save(self, path: str | Path) -> None:
        """Write the vocabulary so that `load` gives it back; compressed if the name ends in .gz or .xz.

        Args:
            path: The file to write.

        Raises:
            DataError: A token would not be read back as it is.
        """
        for number, token in enumerate(self._tokens):
            if not _survives(token, first=number == 0):
                raise DataError(
                    f"token {number} of the vocabulary, {token!r}, cannot stand on a line of its own; "
                    "leave out tokens with white space around them, line ends, NUL or lone surrogates"
                )
        content = "".join(f"{token}\n" for token in self._tokens).encode()
        if Path(path).suffix == ".gz":
            content = gzip.compress(content)
        elif Path(path).suffix == ".xz":
            content = lzma.compress(content)
        Path(path).write_bytes(content)

    @property
    def tokens(self) -> tuple[str, ...]:
        """All tokens in the order of their ids."""
        return self._tokens

    def id(self, token: str) -> int:
        """Return the id of a token, that of `<UNK>` if the token is not in the vocabulary.

        Raises:
            DataError: Neither the token nor `<UNK>` is in the vocabulary.
        """
        number = self._ids.get(token)
        if number is None:
            number = self._ids.get(UNKNOWN_TOKEN)
        if number is None:
            raise DataError(
                f"{token!r} is not in the vocabulary of {len(self)} tokens, and there is no {UNKNOWN_TOKEN} "
                f"to stand for it; add a line {UNKNOWN_TOKEN} to the vocabulary the model was trained with"
            )
        return number

    def require_specials(self) -> None:
        """Check that `<S>`, `</S>` and `<UNK>` are there.

        Raises:
            DataError: One of them is missing.
        """
        missing = [token for token in SPECIAL_TOKENS if token not in self._ids]
        if missing:
            raise DataError(
                f"the vocabulary of {len(self)} tokens has no {', '.join(missing)}; "
                f"expected {', '.join(SPECIAL_TOKENS)}, as a rule first; add what is missing"
            )

    def __len__(self) -> int:
        return len(self._tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._ids


def _survives(token: str, *, first: bool) -> bool:
    """Tell whether a token is the same after writing and reading."""
    if token != token.strip() or "\n" in token or "\0" in token or token == _NOT_A_TOKEN:
        return False
    if first and token.startswith("\ufeff"):
        return False  # would be taken for a byte order mark
    return token.isascii() or token == token.encode("utf-8", "ignore").decode()
