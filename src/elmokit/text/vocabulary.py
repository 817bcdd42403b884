"""The vocabulary file: one token per line, the line number is the id."""

import gzip
import lzma
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

from elmokit.base import write_bytes
from elmokit.errors import DataError
from elmokit.text.character_ids import BEGIN_SENTENCE_TOKEN, END_SENTENCE_TOKEN
from elmokit.text.lines import read_lines
from elmokit.text.traditional import simplified

UNKNOWN_TOKEN = "<UNK>"
SPECIAL_TOKENS = (BEGIN_SENTENCE_TOKEN, END_SENTENCE_TOKEN, UNKNOWN_TOKEN)

_NOT_A_TOKEN = "!!!MAXTERMID"  # a line of some old vocabulary files that all readers skip


class Vocabulary:
    """Tokens and their ids, which are rows of a softmax or of a table of word vectors.

    A token that occurs twice keeps both rows, since the weights have one row per line of the file; its id is
    the later one, as in bilm-tf. A traditional Chinese character that is not among the tokens has the id
    of its simplified form, so that a model of simplified text reads both.

    Args:
        tokens: The tokens in the order of their ids.

    Example:
        >>> vocabulary = Vocabulary(["<S>", "</S>", "<UNK>", "bank"])
        >>> vocabulary.id("bank"), vocabulary.id("brook"), len(vocabulary), "brook" in vocabulary
        (3, 2, 4, False)
        >>> Vocabulary(["<UNK>", "银"]).id("銀")
        1
    """

    def __init__(self, tokens: Iterable[str]) -> None:
        self._tokens = tuple(tokens)
        self._ids = {token: number for number, token in enumerate(self._tokens)}

    @classmethod
    def load(cls, path: str | Path, *, rows: int | None = None) -> "Vocabulary":
        """Read a vocabulary file, plain or compressed.

        Args:
            path: The file.
            rows: Of the weights that it numbers, if known: more tokens are not kept in memory.

        As in bilm-tf, white space around a token is stripped, the line `!!!MAXTERMID` is skipped and gets no
        id, and an empty line gets one.

        Raises:
            DataError: The file cannot be read as UTF-8 text, or does not have as many tokens as `rows`.
        """
        lines = (line.strip() for line in read_lines(path, whole=True))
        tokens = (token for token in lines if token != _NOT_A_TOKEN)
        kept = list(islice(tokens, rows))
        found = len(kept) + sum(1 for _ in tokens)
        if rows is not None and found != rows:
            raise DataError(
                f"{path}: the vocabulary has {found} words, the weights have {rows} rows; "
                "use the vocabulary file that this model was trained with"
            )
        return cls(kept)

    def save(self, path: str | Path) -> None:
        """Write the vocabulary to a file, compressed if its name ends in .gz or .xz.

        Raises:
            DataError: `load` would not read a token back as it is.
        """
        for number, token in enumerate(self._tokens):
            if not _survives(token, first=number == 0):
                raise DataError(
                    f"token {number} of the vocabulary, {token!r}, cannot be written as a line of text; "
                    "leave out tokens with white space around them, line ends, NUL or lone surrogates"
                )
        content = "".join(f"{token}\n" for token in self._tokens).encode()
        pack: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".xz": lzma.compress}
        write_bytes(Path(path), pack.get(Path(path).suffix, bytes)(content))

    @property
    def tokens(self) -> tuple[str, ...]:
        """All tokens in the order of their ids."""
        return self._tokens

    def id(self, token: str) -> int:
        """Return the id of a token, or that of `<UNK>` if the token is not in the vocabulary.

        Raises:
            DataError: Neither the token nor `<UNK>` is in the vocabulary.
        """
        number = self._ids.get(token)
        if number is None and len(token) == 1 and not token.isascii():
            number = self._ids.get(simplified(token) or token)
        if number is None:
            number = self._ids.get(UNKNOWN_TOKEN)
        if number is None:
            raise DataError(
                f"{token!r} is not in the vocabulary of {len(self)} tokens, which has no {UNKNOWN_TOKEN} "
                f"either; use the vocabulary file that the model was trained with"
            )
        return number

    def require_specials(self) -> None:
        """Raise a DataError unless the vocabulary has `<S>`, `</S>` and `<UNK>`."""
        missing = [token for token in SPECIAL_TOKENS if token not in self._ids]
        if missing:
            raise DataError(
                f"the vocabulary of {len(self)} tokens has no {', '.join(missing)}; "
                f"expected {', '.join(SPECIAL_TOKENS)}, usually first; add what is missing"
            )

    def __len__(self) -> int:
        return len(self._tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._ids


def _survives(token: str, *, first: bool) -> bool:
    """Return whether a token is the same after writing and reading."""
    if token != token.strip() or "\n" in token or "\0" in token or token == _NOT_A_TOKEN:
        return False
    if first and token.startswith("\ufeff"):
        return False  # it would be read as a byte order mark
    return token.isascii() or token == token.encode("utf-8", "ignore").decode()
