"""Tokenizers of optional libraries, with the `Tokenizer` protocol."""

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


def spacy_tokenizer(language: str | None) -> Tokenizer:
    """Make the tokenizer of `spacy.blank(language)`; without a language, of spaCy's multi-language `xx`."""
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
        spacy_tokenize = spacy.blank(code).tokenizer
    except ImportError as error:
        raise ConfigError(f"spaCy cannot tokenise {code!r}: {error}; or use another tokenizer") from error

    def tokenize(text: str) -> list[Token]:
        document = spacy_tokenize(_LONE_SURROGATE.sub(_STAND_IN, text))
        spans = [(token.idx, token.idx + len(token)) for token in document if not token.is_space]
        return [Token(text[start:end], start, end) for start, end in spans]

    return tokenize


def moses_tokenizer(language: str | None) -> Tokenizer:
    """Make the tokenizer of Moses, without its HTML escapes."""
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
    """Make the word breaker of ICU, which has dictionaries for languages without spaces."""
    try:
        from icu4py.breakers import WordBreaker
    except ImportError as error:
        raise MissingExtra("icu4py", "icu", "the tokenizer 'icu'") from error
    # ICU itself accepts any language and falls back to its root rules, so check it here.
    locale = primary(language) if language else "root"

    def tokenize(text: str) -> list[Token]:
        # The offsets of the breaker count UTF-16 units, so use only its strings.
        return _placed(WordBreaker(_LONE_SURROGATE.sub(_STAND_IN, text), locale), text)

    return tokenize


def jieba_tokenizer(language: str | None) -> Tokenizer:
    """Make the tokenizer of jieba, which finds the words of Chinese text."""
    if language is not None and primary(language) != "zh":
        raise ConfigError(f"jieba tokenises Chinese only; expected language 'zh' or none, found {language!r}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about jieba's old escapes and pkg_resources
            import jieba
    except ImportError as error:
        raise MissingExtra("jieba", "zh", "the tokenizer 'jieba'") from error
    segmenter = jieba.Tokenizer()
    level = jieba.default_logger.level
    jieba.default_logger.setLevel(logging.WARNING)  # or it reports each dictionary it loads
    try:
        segmenter.initialize()
    finally:
        jieba.default_logger.setLevel(level)

    def tokenize(text: str) -> list[Token]:
        return _placed(segmenter.cut(text), text)

    return tokenize


def _placed(pieces: Iterable[str], text: str) -> list[Token]:
    """Give consecutive pieces of a text their offsets, and drop white space."""
    tokens = []
    start = 0
    for piece in pieces:
        end = start + len(piece)
        if not piece.isspace():
            tokens.append(Token(text[start:end], start, end))
        start = end
    return tokens


def _align(pieces: Iterable[str], text: str) -> list[Token]:
    """Find the offsets of the tokens of Moses, which drops white space and control characters."""
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
                    f"into {piece!r}, so the token has no offsets; use another tokenizer, e.g. 'rules'"
                )
            start = position if start < 0 else start
            position += 1
        tokens.append(Token(piece, start, position))
    return tokens


def _droppable(character: str) -> bool:
    """Return whether Moses drops this character: white space and ASCII control characters."""
    return character.isspace() or character < " "
