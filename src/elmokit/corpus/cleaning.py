"""Clean raw text: HTML entities, Unicode normal forms, control characters."""

import html
import unicodedata
from typing import Final

import regex

# Only with the semicolon: HTML would also read "&copy=1" in a web address as "©=1".
_ENTITY: Final = regex.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
# White space other than a space or a line feed, including U+2028, U+2029 and U+0085, which break lines.
_SPACE: Final = regex.compile(r"[\s\x1c-\x1f--[ \n]]+", regex.VERSION1)
# Control characters, the byte order mark and lone surrogates, which JSON can hold.
_NO_TEXT: Final = regex.compile(r"[\p{Cc}\p{Cs}\ufeff--\n]+", regex.VERSION1)


def clean(text: str) -> str:
    r"""Clean a text: decode HTML entities, normalise to NFC, replace white space by spaces, drop controls.

    Line feeds stay as they are, and none is added. Entities that were escaped twice are decoded once.

    Example:
        >>> clean("AT&amp;T\x00 cafe\u0301\tau\xa0lait &amp;lt;")
        'AT&T café au lait &lt;'
    """
    if "&" in text:
        text = _ENTITY.sub(_character, text)
    text = unicodedata.normalize("NFC", text)
    if all(map(str.isprintable, text.split("\n"))):  # nearly always true, and faster than the patterns
        return text
    cleaned: str = _NO_TEXT.sub("", _SPACE.sub(" ", text))
    return cleaned


def _character(entity: "regex.Match[str]") -> str:
    """Return the character of an entity; a space for a line feed, which would end the sentence."""
    return html.unescape(entity.group()).replace("\n", " ")
