"""What BM25 compares: the words of a text in lower case, without endings; of Chinese its characters."""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import regex

from elmokit.errors import MissingExtra

_TERM = regex.compile(r"[\p{L}\p{N}\p{M}]++")
_HAN = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]")
_STEMMED = {
    "ar": "arabic", "ca": "catalan", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "es": "spanish", "et": "estonian", "eu": "basque", "fi": "finnish", "fr": "french", "hi": "hindi",
    "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian",
    "nl": "dutch", "no": "norwegian", "pt": "portuguese", "ro": "romanian", "ru": "russian",
    "sv": "swedish", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip


def make_term_finder(language: str | None) -> Callable[[str], list[str]]:
    """Return a function from a text to its terms.

    Args:
        language: Its code; words of a language that has no stemmer stay whole.

    Raises:
        MissingExtra: PyStemmer is not installed.

    Example:
        >>> make_term_finder("en")("The banks' rates"), make_term_finder("zh")("加息3次")
        (['the', 'bank', 'rate'], ['加', '息', '加息', '3', '次'])
    """
    stem = _stemmer(_STEMMED[language]) if language in _STEMMED else None

    def find(text: str) -> list[str]:
        words = _TERM.findall(text.lower())
        found: list[str] = []
        for word in words:
            if _HAN.search(word):
                found += _characters(word)
            else:
                found.append(word)
        return found if stem is None else stem(found)

    return find


def _characters(word: str) -> Iterable[str]:
    """Return the characters and pairs of characters of a word, and what is between them as words."""
    run = ""
    for part in regex.splititer(r"([\p{Han}\p{Hiragana}\p{Katakana}]++)", word):
        if part and _HAN.match(part):
            run = part
            yield from run
            yield from (run[at : at + 2] for at in range(len(run) - 1))
        elif part:
            yield part


@cache
def _stemmer(name: str) -> Callable[[list[str]], list[str]]:
    try:
        import Stemmer
    except ImportError as error:
        raise MissingExtra("PyStemmer", "search", "searching by words") from error
    stemmer: Any = Stemmer.Stemmer(name)

    def stem(words: list[str]) -> list[str]:
        found: list[str] = stemmer.stemWords(words)
        return found

    return stem
