"""Tokenizers of optional libraries behind our protocol."""

import logging
import pkgutil
import re
import warnings
from collections.abc import Iterable

from elmokit.errors import ConfigError, DataError, MissingExtra
from elmokit.text.languages import primary
from elmokit.text.tokens import Token, Tokenizer

_LONE_SURROGATE = re.compile("[\\ud800-\\udfff]")
_STAND_IN = "\ufffd"  # spaCy and ICU fail on lone surrogates, which text from JSON may hold
_MOSES_DROPS_BELOW = " "  # Moses deletes the ASCII control characters


def spacy_tokenizer(language: str | None) -> Tokenizer:
    """Make the tokenizer of `spacy.blank(language)`; no language is spaCy's `xx`, which knows none."""
    try:
        import spacy
        import spacy.lang
    except ImportError as error:
        raise MissingExtra("spaCy", "spacy", "the tokenizer 'spacy'") from error
    code = language or "xx"
    accepted = sorted(module.name for module in pkgutil.iter_modules(spacy.lang.__path__) if module.ispkg)
    if code not in accepted:
        raise ConfigError(f"language {code!r} is not known to spaCy; expected one of: {' '.join(accepted)}")
    try:
        cut = spacy.blank(code).tokenizer
    except ImportError as error:
        raise ConfigError(
            f"spaCy cannot cut {code!r} by itself: {error}; or take another tokenizer"
        ) from error

    def tokenize(text: str) -> list[Token]:
        document = cut(_LONE_SURROGATE.sub(_STAND_IN, text))
        spans = [(token.idx, token.idx + len(token)) for token in document if not token.is_space]
        return [Token(text[start:end], start, end) for start, end in spans]

    return tokenize


def moses_tokenizer(language: str | None) -> Tokenizer:
    """Make Moses' tokenizer without its HTML escapes."""
    try:
        from sacremoses import MosesTokenizer
        from sacremoses.corpus import NonbreakingPrefixes
    except ImportError as error:
        raise MissingExtra("sacremoses", "moses", "the tokenizer 'moses'") from error
    accepted = sorted(set(NonbreakingPrefixes().available_langs.values()))
    if language not in accepted:
        raise ConfigError(
            f"language {language!r} is not known to Moses; expected one of: {' '.join(accepted)}"
        )
    moses = MosesTokenizer(language)

    def tokenize(text: str) -> list[Token]:
        return _align(moses.tokenize(text, escape=False), text)

    return tokenize


def icu_tokenizer(language: str | None) -> Tokenizer:
    """Make ICU's word breaker, which has dictionaries for Thai, Lao, Khmer, Burmese, Chinese and Japanese."""
    try:
        from icu4py.breakers import WordBreaker
    except ImportError as error:
        raise MissingExtra("icu4py", "icu", "the tokenizer 'icu'") from error
    # ICU falls back to its root rules for whatever it is given, so the check is ours.
    locale = primary(language) if language else "root"

    def tokenize(text: str) -> list[Token]:
        # The breaker's own offsets count UTF-16 units; its pieces are true strings.
        return _placed(WordBreaker(_LONE_SURROGATE.sub(_STAND_IN, text), locale), text)

    return tokenize


def jieba_tokenizer(language: str | None) -> Tokenizer:
    """Make jieba's cutter of Chinese into words."""
    if language is not None and primary(language) != "zh":
        raise ConfigError(
            f"language {language!r} is not for jieba, which cuts Chinese; expected 'zh' or none"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # jieba's old escapes and pkg_resources are not our users' matter
            import jieba
    except ImportError as error:
        raise MissingExtra("jieba", "zh", "the tokenizer 'jieba'") from error
    cutter = jieba.Tokenizer()
    level = jieba.default_logger.level
    jieba.default_logger.setLevel(logging.WARNING)  # it tells standard error of each dictionary it loads
    try:
        cutter.initialize()
    finally:
        jieba.default_logger.setLevel(level)

    def tokenize(text: str) -> list[Token]:
        return _placed(cutter.cut(text), text)

    return tokenize


def _placed(pieces: Iterable[str], text: str) -> list[Token]:
    """Give consecutive pieces of a text their places in it and drop those of white space."""
    tokens = []
    start = 0
    for piece in pieces:
        end = start + len(piece)
        if not piece.isspace():
            tokens.append(Token(text[start:end], start, end))
        start = end
    return tokens


def _align(pieces: Iterable[str], text: str) -> list[Token]:
    """Find tokens in the text they came from, where white space and control characters may be gone."""
    tokens = []
    position = 0
    for piece in pieces:
        start = -1
        for character in piece:
            while position < len(text) and text[position] != character and _droppable(text[position]):
                position += 1
            if position == len(text) or text[position] != character:
                raise DataError(
                    f"Moses changed the text at character {position} ({text[position : position + 20]!r}) "
                    f"into {piece!r}, so the token has no place in it; take another tokenizer, e.g. 'rules'"
                )
            start = position if start < 0 else start
            position += 1
        tokens.append(Token(piece, start, position))
    return tokens


def _droppable(character: str) -> bool:
    """Tell whether Moses may have left this character out."""
    return character.isspace() or character < _MOSES_DROPS_BELOW
