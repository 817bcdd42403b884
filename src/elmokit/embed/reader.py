"""From texts to batches: what the embedder and the language model do before the network runs."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from elmokit.base import group_until
from elmokit.errors import ConfigError
from elmokit.model import BiLMConfig
from elmokit.text import Token, Tokenizer, Vocabulary, tokens_from_list

logger = logging.getLogger(__name__)

Text = str | Sequence[str]  # running text, or its tokens
Item = TypeVar("Item")

# Sentences are sorted by length within this many batches: enough that those of a batch have similar lengths,
# and few enough that the results fit in memory (50 MB for the small shape, 200 MB for the original).
_WINDOW_BATCHES = 2


class TextReader:
    """Tokenises texts for one model, and warns once about each thing that the model was not made for.

    Args:
        tokenize: Tokenises running text.
        config: Of the model.
        recorded: Whether the model's files, or the user, say which tokenizer to use.
        vocabulary: The words that the model knows, if it has a vector for each word.
    """

    def __init__(
        self,
        tokenize: Tokenizer,
        config: BiLMConfig,
        *,
        recorded: bool,
        vocabulary: Vocabulary | None = None,
    ) -> None:
        self._tokenize = tokenize
        self._encoder = config.encoder
        self._words = None if self._encoder.vocabulary_size is None else vocabulary
        self._recorded = recorded
        self._warned: set[str] = set()

    def __call__(self, text: Text) -> list[Token]:
        """Return the tokens of a string; a list of tokens is taken as it is.

        Raises:
            ConfigError: It is neither.
        """
        if not isinstance(text, str):
            refuse_unless(text, Sequence, "a string or a list of tokens")
            return tokens_from_list(text)
        if not self._recorded:
            self._warn_once(
                "the model's files do not say its language or how its text was tokenised; general rules are "
                "used. Pass tokenizer='rules:en' (or another), or lists of tokens. (Said once.)"
            )
        return self._tokenize(text)

    def unknown(self, tokens: Sequence[str]) -> list[int]:
        """Return the positions of the tokens that a model of words does not know; all have one vector."""
        if self._words is None:
            return []
        unknown = [i for i, token in enumerate(tokens) if token not in self._words]
        if unknown:
            self._warn_once(
                "token %.60r is not among the %d that the model knows: all unknown ones have one vector. If "
                "you tokenised the text yourself, pass it as a string: the model's own tokenizer fits its "
                "words. (Said once.)",
                tokens[unknown[0]],
                len(self._words),
            )
        return unknown

    def truncated(self, tokens: Sequence[str]) -> list[int]:
        """Return the positions of the tokens that are longer than the model reads."""
        truncated = self._encoder.truncated(tokens)
        if truncated:
            self._warn_once(
                "a token has more than %d %s, of which the model reads the first %d only: %.60r… "
                "(Said once.)",
                room := (self._encoder.max_characters or 0) - 2,  # without begin and end marks
                self._encoder.reads,
                room,
                tokens[truncated[0]],
            )
        return truncated

    def _warn_once(self, message: str, *values: object) -> None:
        if message not in self._warned:
            self._warned.add(message)
            logger.warning(message, *values)


def windows(
    items: Iterable[Item], num_tokens: Callable[[Item], int], batch_tokens: int
) -> Iterator[list[Item]]:
    """Group the items into lists, each with enough tokens for a few batches of similar length."""
    return group_until(items, num_tokens, _WINDOW_BATCHES * batch_tokens)


def batches_by_length(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Group the sentences by falling length, as many to a batch as the budget allows (one at least).

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
