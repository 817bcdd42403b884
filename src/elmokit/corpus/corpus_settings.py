"""What a user can choose about the preparation of a corpus."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from elmokit.base import settings_from_dict
from elmokit.errors import ConfigError
from elmokit.text import SPECIAL_TOKENS, TokenizerSpec, choose_spec


@dataclass(frozen=True, kw_only=True)
class PrepareSettings:
    """How raw text becomes a corpus; all that decides the result, besides the text.

    Attributes:
        tokenizer: Cuts sentences into tokens; `whitespace` takes text that is tokenised already. The trained
            model records it.
        split_sentences: Split running text into sentences; False: each line is one.
        min_tokens: Sentences of fewer tokens are dropped, and counted.
        max_tokens: Sentences of more tokens are dropped, and counted.
        deduplicate: Keep the first of sentences with the same tokens, wherever they stand.
        min_count: Words seen less often stay out of the vocabulary. Not 1, since `<UNK>` would then stand
            for nothing in the training text, and nothing be learnt about it.
        max_vocabulary: Rows of the vocabulary at most, the three special ones among them.
        vocabulary: A vocabulary file to take as it is, instead of counting words.
        heldout_share: The share of documents taken out of the training text to measure perplexity on; no
            more than about 100,000 tokens are taken.
        heldout: Files or globs to measure perplexity on instead; then nothing is taken out.
        json_field: The field of a JSON line that holds the text of a document.
        parquet_column: The column of a Parquet file that holds the text of a document.

    Raises:
        ConfigError: A number is out of its range, or sentences are to be split and there is no language.

    Example:
        >>> from elmokit.text import default_spec
        >>> PrepareSettings(tokenizer=default_spec("en"), max_vocabulary=30_000).min_count
        2
    """

    tokenizer: TokenizerSpec
    split_sentences: bool = True
    min_tokens: int = 2
    max_tokens: int = 400
    deduplicate: bool = False
    min_count: int = 2
    max_vocabulary: int = 60_000
    vocabulary: str | Path | None = None
    heldout_share: float = 0.005
    heldout: Sequence[str | Path] = ()
    json_field: str = "text"
    parquet_column: str = "text"

    def __post_init__(self) -> None:
        object.__setattr__(self, "vocabulary", None if self.vocabulary is None else str(self.vocabulary))
        object.__setattr__(self, "heldout", tuple(map(str, self.heldout)))
        least = {"min_tokens": 1, "max_tokens": self.min_tokens, "min_count": 1}
        least["max_vocabulary"] = len(SPECIAL_TOKENS) + 1
        for name, bound in least.items():
            if getattr(self, name) < bound:
                raise ConfigError(f"{name} is {getattr(self, name)}; expected {bound} or more")
        if not 0 <= self.heldout_share <= 0.5:
            raise ConfigError(f"heldout_share is {self.heldout_share}; expected a share from 0 to 0.5")
        if self.split_sentences and self.tokenizer.language is None:
            raise ConfigError(
                f"the tokenizer {self.tokenizer.name!r} has no language, and sentences are to be split; "
                "give one (--language en), or pass one sentence a line with split_sentences=False (--lines)"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON can hold them."""
        return asdict(self) | {"heldout": list(self.heldout)}

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

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "PrepareSettings":
        """Read what `to_dict` wrote.

        Raises:
            ConfigError: A key is unknown.
        """
        unknown = set(values) - {field.name for field in fields(cls)}
        if unknown:
            raise ConfigError(
                f"settings of a corpus that are not known: {', '.join(sorted(unknown))}; "
                "it was made by a newer elmokit: update, or prepare the corpus again"
            )
        return cls(**{**values, "tokenizer": TokenizerSpec.from_dict(values["tokenizer"])})
