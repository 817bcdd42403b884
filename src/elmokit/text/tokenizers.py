"""Tokenizers by name, and the record of which one a model was trained with."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import regex

from elmokit.base import check_flag, check_option, settings_from_dict
from elmokit.errors import ConfigError
from elmokit.text.extras import icu_tokenizer, jieba_tokenizer, moses_tokenizer, spacy_tokenizer
from elmokit.text.languages import BY_CHARACTER, BY_DICTIONARY, primary
from elmokit.text.rules import CJK, SPACE, RuleTokenizer
from elmokit.text.tokens import Token, Tokenizer

_CJK_TOKEN = regex.compile(
    rf"""
    [{CJK}||\p{{Hangul}}]\p{{M}}*
    | \p{{N}}++(?:[.,]\p{{N}}++)++  # numbers such as 3.5
    | [\p{{L}}\p{{M}}\p{{N}}--[{CJK}\p{{Hangul}}]]++
    | [^{SPACE}]\p{{M}}*
    """,
    regex.VERBOSE | regex.VERSION1,
)
_NO_WHITE_SPACE = regex.compile(rf"[^{SPACE}]++", regex.VERSION1)


@dataclass(frozen=True, kw_only=True)
class TokenizerSpec:
    """Which tokenizer a model was trained with; part of its config.json.

    Attributes:
        name: `rules`, `characters`, `whitespace`, `spacy`, `moses`, `icu` or `jieba`.
        language: An ISO 639 code such as `en`, or None if the tokenizer needs none.
        lowercase: Lower-case the tokens. Their offsets refer to the text as given.

    Raises:
        ConfigError: A value is not allowed.
    """

    name: str
    language: str | None = None
    lowercase: bool = False

    def __post_init__(self) -> None:
        check_option("tokenizer", self.name, _MAKERS)
        check_flag("lowercase", self.lowercase)
        if not isinstance(self.language, str | None):
            raise ConfigError(f"language must be a code such as 'en', found {self.language!r}")

    def to_dict(self) -> dict[str, Any]:
        """Return the spec as plain data."""
        return asdict(self)

    @classmethod
    def parse(cls, text: str) -> "TokenizerSpec":
        """Read "name" or "name:language".

        Raises:
            ConfigError: There is no such tokenizer.

        Example:
            >>> TokenizerSpec.parse("rules:en")
            TokenizerSpec(name='rules', language='en', lowercase=False)
        """
        name, _, language = text.partition(":")
        return cls(name=name, language=language or None)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "TokenizerSpec":
        """Read what `to_dict` returned.

        Raises:
            ConfigError: A key is unknown, the name is missing, or a value is not allowed.
        """
        return settings_from_dict(cls, values, "tokenizer")


def default_spec(language: str) -> TokenizerSpec:
    """Choose the tokenizer for a language by its script.

    Args:
        language: An ISO 639 code, with or without a region: `en`, `pt-BR`.

    Returns:
        `characters` for Chinese and Japanese, `icu` for Thai, Lao, Khmer and Burmese, `rules` otherwise.

    Raises:
        ConfigError: The language is not known.

    Example:
        >>> default_spec("zh")
        TokenizerSpec(name='characters', language='zh', lowercase=False)
    """
    code = primary(language)
    if code in BY_CHARACTER:
        return TokenizerSpec(name="characters", language=code)
    return TokenizerSpec(name="icu" if code in BY_DICTIONARY else "rules", language=code)


def choose_spec(tokenizer: str | None, language: str | None, *, lowercase: bool = False) -> TokenizerSpec:
    """Choose a tokenizer by its name or, without one, by the language of the text.

    Args:
        tokenizer: A name such as "rules" or "rules:en", or None.
        language: An ISO 639 code, or None.
        lowercase: Lower-case the tokens.

    Raises:
        ConfigError: The tokenizer or the language is unknown, or both are None.

    Example:
        >>> choose_spec("moses", "en")
        TokenizerSpec(name='moses', language='en', lowercase=False)
    """
    if tokenizer:
        spec = TokenizerSpec.parse(tokenizer)
        spec = replace(spec, language=spec.language or language)
    elif language:
        spec = default_spec(language)
    else:
        raise ConfigError("the language of the text is needed, for example language='en'")
    return replace(spec, lowercase=lowercase)


def make_tokenizer(spec: TokenizerSpec) -> Tokenizer:
    """Make the tokenizer that a spec describes.

    Returns:
        A function from a string to its tokens with their offsets.

    Raises:
        ConfigError: The tokenizer does not know the language.
        MissingExtra: The tokenizer's library is not installed.

    Example:
        >>> tokenize = make_tokenizer(TokenizerSpec(name="rules", language="en", lowercase=True))
        >>> [token.text for token in tokenize("The bank didn't pay $5.")]
        ['the', 'bank', 'did', "n't", 'pay', '$', '5', '.']
    """
    tokenize = _MAKERS[spec.name](spec.language)
    return partial(_lowercased, tokenize) if spec.lowercase else tokenize


def _lowercased(tokenize: Tokenizer, text: str) -> list[Token]:
    return [Token(token.text.lower(), token.start, token.end) for token in tokenize(text)]


def make_word_tokenizer(spec: TokenizerSpec) -> Callable[[str], list[str]]:
    """Make the tokenizer that a spec describes, without offsets.

    Returns:
        A function from a string to the texts of its tokens. For `rules` and `whitespace` it takes less than
        half the time of `make_tokenizer`.

    Raises:
        ConfigError: The tokenizer does not know the language.
        MissingExtra: The tokenizer's library is not installed.

    Example:
        >>> make_word_tokenizer(TokenizerSpec(name="rules", language="en"))("It can't.")
        ['It', 'ca', "n't", '.']
    """
    tokenize = _MAKERS[spec.name](spec.language)
    words: Callable[[str], list[str]]
    if isinstance(tokenize, RuleTokenizer):
        words = tokenize.words
    elif spec.name == "whitespace":
        words = str.split
    else:
        words = lambda text: [token.text for token in tokenize(text)]  # noqa: E731
    return (lambda text: [word.lower() for word in words(text)]) if spec.lowercase else words


def _rules(language: str | None) -> Tokenizer:
    return RuleTokenizer(None if language is None else primary(language))


def _by_pattern(pattern: "regex.Pattern[str]", language: str | None) -> Tokenizer:
    """Make a tokenizer whose tokens are the matches of a pattern, for any known language."""
    if language is not None:
        primary(language)
    return partial(_matches, pattern)


def _matches(pattern: "regex.Pattern[str]", text: str) -> list[Token]:
    return [Token(match.group(), *match.span()) for match in pattern.finditer(text)]


_MAKERS: dict[str, Callable[[str | None], Tokenizer]] = {
    "rules": _rules,
    "characters": partial(_by_pattern, _CJK_TOKEN),
    "whitespace": partial(_by_pattern, _NO_WHITE_SPACE),
    "spacy": spacy_tokenizer,
    "moses": moses_tokenizer,
    "icu": icu_tokenizer,
    "jieba": jieba_tokenizer,
}
