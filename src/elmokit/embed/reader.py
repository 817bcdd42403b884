"""From texts to batches: what the embedder and the language model do before the network runs."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import TypeVar

from elmokit.base import check_number, group_arriving, group_until, shown
from elmokit.errors import ConfigError
from elmokit.model import BiLMConfig
from elmokit.text import Token, Tokenizer, Vocabulary, count_scripts, foreign_script, tokens_from_list

logger = logging.getLogger(__name__)

Text = str | Sequence[str]  # running text, or its tokens
Given = TypeVar("Given")
Item = TypeVar("Item")

# Sentences are sorted by length within this many batches: enough that those of a batch have similar lengths,
# and few enough that the results fit in memory (50 MB for the small shape, 200 MB for the original).
_WINDOW_BATCHES = 2
_CHECKED_TEXTS = 100  # whose script is looked at
_FIRST_SHARE = 64  # the first list of an iterator has this fraction of the tokens


class TextReader:
    """Tokenises texts for one model, and warns once about each thing that the model was not made for.

    Args:
        tokenize: Tokenises running text.
        config: Of the model.
        recorded: Whether the model's files, or the user, say which tokenizer to use.
        vocabulary: The words that the model knows, if it has a vector for each word.
        known: The scripts of the text that it was trained on, if that is known.
    """

    def __init__(
        self,
        tokenize: Tokenizer,
        config: BiLMConfig,
        *,
        recorded: bool,
        vocabulary: Vocabulary | None = None,
        known: frozenset[str] = frozenset(),
    ) -> None:
        self._known = known
        self._to_check = _CHECKED_TEXTS if known else 0
        self._tokenize = tokenize
        self._encoder = config.encoder
        self._words = None if self._encoder.vocabulary_size is None else vocabulary
        self._recorded = recorded
        self._given_tokens = False
        self._warned: set[str] = set()

    def __call__(self, text: Text) -> list[Token]:
        """Return the tokens of a string; a list of tokens is taken as it is.

        Raises:
            ConfigError: It is neither.
        """
        if not isinstance(text, str):
            refuse_unless(text, Sequence, "a string or a list of tokens")
            self._given_tokens = True
            self._check_script(" ".join(map(str, text)))
            return tokens_from_list(text)
        self._check_script(text)
        if not self._recorded:
            self._warn_once(
                "the model's files do not say its language or how its text was tokenised; general rules are "
                "used. Pass tokenizer='rules:en' (or another), or lists of tokens. (Said once.)"
            )
        return self._tokenize(text)

    def _check_script(self, text: str) -> None:
        """Warn about a text in a script that the model has not read; only the first texts are looked at."""
        if not self._to_check:
            return
        self._to_check -= 1
        if script := foreign_script(count_scripts(text), self._known):
            self._warn_once(
                "most words of %s are %s, but the model was trained on %s text: its vectors mean little "
                "there. Use a model of that language%s. (Said once.)",
                shown(text, 32),
                script,
                " and ".join(sorted(self._known)),
                ", such as zh" if script == "Chinese" else "",
            )

    def unknown(self, tokens: Sequence[str]) -> list[int]:
        """Return the positions of the tokens that a model of words does not know; all have one vector."""
        if self._words is None:
            return []
        unknown = [i for i, token in enumerate(tokens) if token not in self._words]
        if unknown:
            self._warn_once(
                "token %s is not among the %d that the model knows: all unknown ones have one vector%s. "
                "(Said once.)",
                shown(tokens[unknown[0]]),
                len(self._words),
                "; pass a string for the model's own tokenizer, which fits its words" * self._given_tokens,
            )
        return unknown

    def truncated(self, tokens: Sequence[str]) -> list[int]:
        """Return the positions of the tokens that are longer than the model reads."""
        truncated = self._encoder.truncated(tokens)
        if truncated:
            self._warn_once(
                "a token has more than %d %s, of which the model reads the first %d only: %s (Said once.)",
                room := (self._encoder.max_characters or 0) - 2,  # without begin and end marks
                self._encoder.reads,
                room,
                shown(tokens[truncated[0]]),
            )
        return truncated

    def _warn_once(self, message: str, *values: object) -> None:
        if message not in self._warned:
            self._warned.add(message)
            logger.warning(message, *values)


def windows(
    texts: Iterable[Given],
    prepare: Callable[[Given], Item],
    num_tokens: Callable[[Item], int],
    batch_tokens: int,
    *,
    latency: float | None = None,
) -> Iterator[list[Item]]:
    """Prepare texts and group them into lists, each with enough tokens for a few batches of similar length.

    The first lists of an iterator are shorter, so that its first results come early.

    Args:
        texts: What was given to a `stream` method.
        prepare: Makes an item of a text.
        num_tokens: The size of an item.
        batch_tokens: The size of a batch.
        latency: The longest, in seconds, that a text waits for others to share its batch; if None, until
            there are enough.

    Raises:
        ConfigError: `texts` is one string, or the latency is no number of 0 or more.
    """
    refuse_one_string(texts)
    refuse_unless(texts, Iterable, "a list of texts, or another iterable")
    limit = _WINDOW_BATCHES * batch_tokens
    first = None if isinstance(texts, Sized) else max(1, limit // _FIRST_SHARE)
    if latency is not None:
        check_number("latency", latency, least=0)
        return group_arriving(texts, prepare, num_tokens, limit, latency=latency, first=first)
    return group_until(map(prepare, texts), num_tokens, limit, first=first)


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
        raise ConfigError(f"expected {expected}, found {type(value).__name__} {shown(value)}")


def refuse_one_string(texts: object) -> None:
    """Raise a ConfigError for a string, which Python would read as a list of its characters."""
    if isinstance(texts, str):
        raise ConfigError(f"expected a list of texts, found one string {shown(texts)}; pass [text]")
