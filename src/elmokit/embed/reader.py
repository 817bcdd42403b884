"""From texts to batches: what the embedder and the language model do alike before the network runs."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from elmokit.errors import ConfigError
from elmokit.model import BiLMConfig, CharCNNConfig, LexiconConfig
from elmokit.text import Token, Tokenizer, Vocabulary, is_truncated, tokens_from_list

logger = logging.getLogger(__name__)

Text = str | Sequence[str]  # running text, or its tokens
Item = TypeVar("Item")

# Sentences are sorted by length within this many batches: enough that those of a batch are of like length,
# and few enough that a window's results fit in memory (50 MB for the small shape, 200 MB for the original).
_WINDOW_BATCHES = 2


class Reader:
    """Cuts texts into the tokens of one model, and warns, once each, of what the model was not made for.

    Args:
        tokenize: cuts running text.
        config: of the model.
        recorded: whether the model's files, or the user, say which tokenizer that is.
        words: the words of a model that has a vector for each and none for others.
    """

    def __init__(
        self,
        tokenize: Tokenizer,
        config: BiLMConfig,
        *,
        recorded: bool,
        words: Vocabulary | None = None,
    ) -> None:
        self._words = words
        self._warned_of_unknown = False
        self._tokenize = tokenize
        encoder = config.encoder
        self._in_bytes = isinstance(encoder, CharCNNConfig)
        characters = encoder.characters if isinstance(encoder, LexiconConfig) else encoder
        self._max_characters = characters.max_characters if isinstance(characters, CharCNNConfig) else None
        self._warned_of_tokenizer = recorded
        self._warned_of_truncation = False

    def __call__(self, text: Text) -> list[Token]:
        """The tokens of a string; a list of tokens is taken as it is.

        Raises:
            ConfigError: it is neither.
        """
        if not isinstance(text, str):
            refuse_unless(text, Sequence, "a string or a list of tokens")
            return tokens_from_list(text)
        if not self._warned_of_tokenizer:
            self._warned_of_tokenizer = True
            logger.warning(
                "the model's files do not say its language, nor how its text was cut into tokens; "
                "general rules are used. Pass tokenizer='rules:en' (or another), or lists of tokens. "
                "(Said once.)"
            )
        return self._tokenize(text)

    def unknown(self, tokens: Sequence[str]) -> list[int]:
        """Positions of the tokens that a model of words does not know, all of which have one vector."""
        if self._words is None:
            return []
        unknown = [i for i, token in enumerate(tokens) if token not in self._words]
        if unknown and not self._warned_of_unknown:
            self._warned_of_unknown = True
            logger.warning(
                "token %.60r is not among the %d that the model knows: all unknown ones have one vector. "
                "If you cut the text yourself, pass it uncut: it is cut as the model's was. (Said once.)",
                tokens[unknown[0]],
                len(self._words),
            )
        return unknown

    def truncated(self, tokens: Sequence[str]) -> list[int]:
        """Positions of the tokens that are longer than the model reads."""
        longest = self._max_characters
        if longest is None:
            return []
        # A character has at most four bytes, so most tokens need no second look.
        found = [
            i
            for i, token in enumerate(tokens)
            if 4 * len(token) > longest - 2
            and (is_truncated(token, max_characters=longest) if self._in_bytes else len(token) > longest - 2)
        ]
        if found and not self._warned_of_truncation:
            self._warned_of_truncation = True
            logger.warning(
                "a token has more than %d %s, of which the model reads the first %d only: %.60r… "
                "(Said once.)",
                longest - 2,
                "bytes" if self._in_bytes else "characters",
                longest - 2,
                tokens[found[0]],
            )
        return found


def windows(
    items: Iterable[Item], num_tokens: Callable[[Item], int], batch_tokens: int
) -> Iterator[list[Item]]:
    """The items by lists, each of enough tokens for a few batches of like length; no list is empty."""
    window: list[Item] = []
    tokens = 0
    for item in items:
        window.append(item)
        tokens += num_tokens(item)
        if tokens >= _WINDOW_BATCHES * batch_tokens:
            yield window
            window, tokens = [], 0
    if window:
        yield window


def batches_by_length(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """The sentences by falling length, as many to a batch as the budget allows (one at least).

    Example:
        >>> list(batches_by_length([2, 5, 3], batch_tokens=6))
        [[1], [2, 0]]
    """
    batch: list[int] = []
    total = 0
    for row in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
        if batch and total + lengths[row] > batch_tokens:
            yield batch
            batch, total = [], 0
        batch.append(row)
        total += lengths[row]
    if batch:
        yield batch


def refuse_unless(value: object, kind: type, expected: str) -> None:
    """Raise a ConfigError if `value` is not of that kind; bytes never are."""
    if not isinstance(value, kind) or isinstance(value, bytes):
        raise ConfigError(f"expected {expected}, found {type(value).__name__} {value!r:.60}")


def refuse_one_string(texts: object) -> None:
    """Raise a ConfigError for a string, which Python would read as a list of its characters."""
    if isinstance(texts, str):
        raise ConfigError(f"expected a list of texts, found one string {texts!r:.60}; pass [text]")
