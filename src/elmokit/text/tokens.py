"""A token with its place in the text, and the protocol that every tokenizer keeps."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from elmokit.errors import ConfigError


class Token(NamedTuple):
    """A token and the span of the given string it was read from.

    `text` is the string's `[start:end]`, except where the tokenizer was told to lower-case, or where
    Moses drops control characters from inside a token.
    """

    text: str
    start: int
    end: int


class Tokenizer(Protocol):
    """Anything that cuts a string into tokens, in order and without overlap."""

    def __call__(self, text: str) -> list[Token]:
        """Cut `text` into tokens."""
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
    """The sentences of any iterable as a list; a ConfigError if they, or one of them, are a bare string."""
    refuse_bare_string(sentences)  # type: ignore[arg-type]
    found = list(sentences)
    for sentence in found:
        refuse_bare_string(sentence)
    return found


def tokens_from_list(tokens: Sequence[str]) -> list[Token]:
    """Give tokens that were cut elsewhere their places, as if they were joined by one blank.

    Args:
        tokens: The tokens of one sentence; a bare string is refused.

    Returns:
        The same tokens with offsets into `" ".join(tokens)`.

    Raises:
        ConfigError: `tokens` is a string or holds something that is none.

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
        end = start + len(token)
        placed.append(Token(token, start, end))
        start = end + 1
    return placed
