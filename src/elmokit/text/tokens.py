"""Tokens with their offsets, and the protocol of a tokenizer."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from elmokit.errors import ConfigError


class Token(NamedTuple):
    """A token and its span in the given string.

    `text` equals the string's `[start:end]`, unless the tokenizer lower-cases, or Moses dropped control
    characters from inside the token.
    """

    text: str
    start: int
    end: int


class Tokenizer(Protocol):
    """A function that splits a string into tokens, in order and without overlap."""

    def __call__(self, text: str) -> list[Token]:
        """Tokenise `text`."""
        ...


def refuse_bare_string(tokens: Sequence[str]) -> None:
    """Raise a ConfigError if `tokens` is one string, which Python would read as a list of its characters."""
    if isinstance(tokens, str):
        shown = tokens if len(tokens) <= 40 else f"{tokens[:37]}..."
        raise ConfigError(
            f"expected a list of tokens, found the bare string {shown!r}; "
            "pass a list such as ['The', 'bank'], or tokenise the string first"
        )


def lists_of_tokens(sentences: Iterable[Sequence[str]]) -> list[Sequence[str]]:
    """Return the sentences as a list; raise a ConfigError if they, or one of them, are a bare string."""
    refuse_bare_string(sentences)  # type: ignore[arg-type]
    found = list(sentences)
    for sentence in found:
        refuse_bare_string(sentence)
    return found


def tokens_from_list(tokens: Sequence[str]) -> list[Token]:
    """Give tokens of one sentence their offsets into `" ".join(tokens)`.

    Raises:
        ConfigError: `tokens` is a string, or an item is not a string.

    Example:
        >>> tokens_from_list(["The", "bank"])
        [Token(text='The', start=0, end=3), Token(text='bank', start=4, end=8)]
    """
    refuse_bare_string(tokens)
    placed = []
    start = 0
    for position, token in enumerate(tokens):
        if not isinstance(token, str):
            raise ConfigError(
                f"token {position} is of type {type(token).__name__}, expected str; "
                "pass one list of strings for one sentence"
            )
        placed.append(Token(token, start, start + len(token)))
        start += len(token) + 1
    return placed
