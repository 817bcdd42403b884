"""The tokenizers by name, and the record of which one a model was trained with."""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from typing import Any

import regex

from elmokit.errors import ConfigError
from elmokit.text.extras import icu_tokenizer, jieba_tokenizer, moses_tokenizer, spacy_tokenizer
from elmokit.text.languages import BY_CHARACTER, BY_DICTIONARY, primary
from elmokit.text.rules import CJK, SPACE, RuleTokenizer
from elmokit.text.tokens import Token, Tokenizer

_PIECE_OF_CJK = regex.compile(
    rf"""
    [{CJK}||\p{{Hangul}}]\p{{M}}*
    | \p{{N}}++(?:[.,]\p{{N}}++)++  # 3.5 is a run of digits too
    | [\p{{L}}\p{{M}}\p{{N}}--[{CJK}\p{{Hangul}}]]++
    | [^{SPACE}]\p{{M}}*
    """,
    regex.VERBOSE | regex.VERSION1,
)
_PIECE_BETWEEN_BLANKS = regex.compile(rf"[^{SPACE}]++", regex.VERSION1)


@dataclass(frozen=True, kw_only=True)
class TokenizerSpec:
    """Which tokenizer a model was trained with; written into its config.json.

    Attributes:
        name: `rules`, `characters`, `whitespace`, `spacy`, `moses`, `icu` or `jieba`.
        language: An ISO 639 code such as `en`; None where the tokenizer needs none.
        lowercase: Lower-case the tokens; their offsets stay those of the text as given.
    """

    name: str
    language: str | None = None
    lowercase: bool = False

    def __post_init__(self) -> None:
        if self.name not in _MAKERS:
            raise ConfigError(
                f"tokenizer {self.name!r} is not known; "
                f"expected one of: {' '.join(_MAKERS)}{_nearest(self.name, _MAKERS)}"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the spec as JSON can hold it.

        Example:
            >>> TokenizerSpec(name="rules", language="en").to_dict()
            {'name': 'rules', 'language': 'en', 'lowercase': False}
        """
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
        """Read what `to_dict` wrote.

        Raises:
            ConfigError: A key is unknown, a value is of the wrong kind, or there is no name.

        Example:
            >>> TokenizerSpec.from_dict({"name": "jieba", "language": "zh"})
            TokenizerSpec(name='jieba', language='zh', lowercase=False)
        """
        known = [field.name for field in fields(cls)]
        for key in values:
            if key not in known:
                raise ConfigError(
                    f"tokenizer setting {key!r} is not known; "
                    f"expected: {', '.join(known)}{_nearest(key, known)}"
                )
        kinds = {"name": str, "language": str | None, "lowercase": bool}
        for key, value in values.items():
            if not isinstance(value, kinds[key]):
                raise ConfigError(
                    f"tokenizer setting {key!r} is {value!r}, expected {kinds[key]}; correct it"
                )
        if "name" not in values:
            raise ConfigError(f"the tokenizer has no 'name'; expected one of: {' '.join(_MAKERS)}")
        return cls(**values)


def default_spec(language: str) -> TokenizerSpec:
    """Choose the tokenizer for a language by how the language is written.

    Args:
        language: An ISO 639 code, with or without a region: `en`, `pt-BR`.

    Returns:
        `characters` for Chinese and Japanese, `icu` for Thai, Lao, Khmer and Burmese, else `rules`.

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

    Args:
        spec: Its name, language and casing.

    Returns:
        A function from a string to its tokens, in order, each with its place.

    Raises:
        ConfigError: The tokenizer does not know the language.
        MissingExtra: The tokenizer's library is not installed.

    Example:
        >>> tokenize = make_tokenizer(TokenizerSpec(name="rules", language="en", lowercase=True))
        >>> [token.text for token in tokenize("The bank didn't pay $5.")]
        ['the', 'bank', 'did', "n't", 'pay', '$', '5', '.']
    """
    tokenize = _MAKERS[spec.name](spec.language)
    if not spec.lowercase:
        return tokenize
    return partial(_lowercased, tokenize)


def _lowercased(tokenize: Tokenizer, text: str) -> list[Token]:
    return [Token(token.text.lower(), token.start, token.end) for token in tokenize(text)]


def make_word_tokenizer(spec: TokenizerSpec) -> Callable[[str], list[str]]:
    """Make the tokenizer that a spec describes without offsets, for those who have no use for them.

    Args:
        spec: Its name, language and casing.

    Returns:
        A function from a string to the spelling of its tokens: those of `make_tokenizer`, but for `rules` and
        `whitespace` in less than half the time.

    Raises:
        ConfigError: The tokenizer does not know the language.
        MissingExtra: The tokenizer's library is not installed.

    Example:
        >>> make_word_tokenizer(TokenizerSpec(name="rules", language="en"))("It can't.")
        ['It', 'ca', "n't", '.']
    """
    tokenize = _MAKERS[spec.name](spec.language)
    cut: Callable[[str], list[str]]
    if isinstance(tokenize, RuleTokenizer):
        cut = tokenize.words
    elif spec.name == "whitespace":
        cut = str.split
    else:
        cut = lambda text: [token.text for token in tokenize(text)]  # noqa: E731
    return (lambda text: [word.lower() for word in cut(text)]) if spec.lowercase else cut


make_word_cutter = make_word_tokenizer  # the old name, until nobody uses it


def _rules(language: str | None) -> Tokenizer:
    return RuleTokenizer(None if language is None else primary(language))


def _characters(language: str | None) -> Tokenizer:
    return _by_pattern(_PIECE_OF_CJK, language)


def _whitespace(language: str | None) -> Tokenizer:
    return _by_pattern(_PIECE_BETWEEN_BLANKS, language)


def _by_pattern(pattern: "regex.Pattern[str]", language: str | None) -> Tokenizer:
    """Make a tokenizer whose tokens are a pattern's matches, in any known language."""
    if language is not None:
        primary(language)
    return partial(_matches, pattern)


def _matches(pattern: "regex.Pattern[str]", text: str) -> list[Token]:
    return [Token(match.group(), *match.span()) for match in pattern.finditer(text)]


def _nearest(name: str, names: Mapping[str, Any] | list[str]) -> str:
    """Say which of the names was probably meant, or nothing."""
    near = difflib.get_close_matches(name, list(names), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


_MAKERS: dict[str, Callable[[str | None], Tokenizer]] = {
    "rules": _rules,
    "characters": _characters,
    "whitespace": _whitespace,
    "spacy": spacy_tokenizer,
    "moses": moses_tokenizer,
    "icu": icu_tokenizer,
    "jieba": jieba_tokenizer,
}
