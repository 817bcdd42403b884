"""What is mended in raw text before it is cut: HTML entities, Unicode forms, control characters."""

import html
import unicodedata
from typing import Final

import regex

# Only those with their semicolon: HTML also reads "&copy=1" of a web address as "©=1".
_ENTITY: Final = regex.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
# White space other than a blank or a line feed. U+2028, U+2029 and U+0085 would break lines.
_SPACE: Final = regex.compile(r"[\s\x1c-\x1f--[ \n]]+", regex.VERSION1)
# Control characters, the byte order mark and halves of surrogate pairs, which JSON can hold: no text at all.
_NO_TEXT: Final = regex.compile(r"[\p{Cc}\p{Cs}\ufeff--\n]+", regex.VERSION1)


def clean(text: str) -> str:
    r"""Mend a text: HTML entities to characters, Unicode to NFC, other white space to blanks; the rest out.

    Line feeds stay where they are, and none is added.

    Args:
        text: Of a document.

    Returns:
        The same, clean; cleaning it again may only resolve entities that were escaped twice.

    Example:
        >>> clean("AT&amp;T\x00 cafe\u0301\tau\xa0lait &amp;lt;")
        'AT&T café au lait &lt;'
    """
    if "&" in text:
        text = _ENTITY.sub(_character, text)
    text = unicodedata.normalize("NFC", text)
    if all(map(str.isprintable, text.split("\n"))):  # nearly always, and faster than a pattern
        return text
    cleaned: str = _NO_TEXT.sub("", _SPACE.sub(" ", text))
    return cleaned


def _character(entity: "regex.Match[str]") -> str:
    """Return what an entity stands for; a line feed would end the sentence, so it is a blank."""
    return html.unescape(entity.group()).replace("\n", " ")
