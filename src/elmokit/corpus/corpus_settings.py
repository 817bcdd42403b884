"""The settings of the preparation of a corpus."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmokit.base import bounded, check_fields, check_whole_number, settings_from_dict
from elmokit.errors import ConfigError
from elmokit.text import SPECIAL_TOKENS, TokenizerSpec, choose_spec


@dataclass(frozen=True, kw_only=True)
class PrepareSettings:
    """How raw text becomes a corpus: everything besides the text that determines the result.

    Attributes:
        tokenizer: The tokenizer, which the trained model records; `whitespace` for tokenised text.
        split_sentences: Split running text into sentences; False if each line is a sentence.
        min_tokens: Drop shorter sentences.
        max_tokens: Drop longer sentences.
        deduplicate: Drop sentences whose tokens have occurred before, anywhere in the text.
        min_count: Leave rarer words out of the vocabulary. With 1, the training text would have no unknown
            words, and nothing would be learnt about `<UNK>`.
        max_vocabulary: The largest size of the vocabulary, including its three special tokens.
        vocabulary: A vocabulary file to use as it is, instead of counting words.
        heldout_share: The share of documents held out to measure perplexity, up to about 100,000 tokens.
        heldout: Files or globs to measure perplexity on; then no training text is held out.
        json_field: The field of a JSON line that holds the text of a document.
        parquet_column: The column of a Parquet file that holds the text of a document.

    Raises:
        ConfigError: A number is out of its range, or the language for splitting sentences is missing.

    Example:
        >>> from elmokit.text import default_spec
        >>> PrepareSettings(tokenizer=default_spec("en"), max_vocabulary=30_000).min_count
        2
    """

    tokenizer: TokenizerSpec
    split_sentences: bool = True
    min_tokens: int = bounded(2, least=1)
    max_tokens: int = 400
    deduplicate: bool = False
    min_count: int = bounded(2, least=1)
    max_vocabulary: int = bounded(60_000, least=len(SPECIAL_TOKENS) + 1)
    vocabulary: str | Path | None = None
    heldout_share: float = bounded(0.005, least=0, most=0.5)
    heldout: Sequence[str | Path] = ()
    json_field: str = "text"
    parquet_column: str = "text"

    def __post_init__(self) -> None:
        object.__setattr__(self, "vocabulary", None if self.vocabulary is None else str(self.vocabulary))
        object.__setattr__(self, "heldout", tuple(map(str, self.heldout)))
        check_fields(self)
        check_whole_number("max_tokens", self.max_tokens, least=self.min_tokens)
        if self.split_sentences and self.tokenizer.language is None:
            raise ConfigError(
                f"splitting sentences needs a language, and the tokenizer {self.tokenizer.name!r} has none; "
                "add it, for example language='en', or use split_sentences=False for one sentence per line"
            )

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> "PrepareSettings":
        """Make settings from what a user chose.

        Args:
            options: Fields of the settings, with `language`, `lowercase` and the name of a tokenizer (such as
                "rules:en") in place of a `TokenizerSpec`. None stands for the default.

        Raises:
            ConfigError: The language is missing, or options contradict each other.
        """
        given = {name: value for name, value in options.items() if value is not None}
        if "vocabulary" in given and given.keys() & {"min_count", "max_vocabulary"}:
            raise ConfigError("a given vocabulary is used as it is; leave out min_count and max_vocabulary")
        if given.get("heldout") and "heldout_share" in given:
            raise ConfigError("heldout names the held-out text; leave out heldout_share")
        spec = choose_spec(
            given.pop("tokenizer", None),
            given.pop("language", None),
            lowercase=given.pop("lowercase", False),
        )
        return settings_from_dict(cls, given | {"tokenizer": spec}, "settings of the corpus")
