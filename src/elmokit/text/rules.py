"""The rule tokenizer, for scripts that separate words by white space.

A text is split at white space. Each chunk is then split by one pattern, whose alternatives are tried in order
at each position, and its words by the clitics of the language. The tokens of a chunk do not depend on its
neighbours, so they are cached: most chunks of a text have occurred before.

Every alternative of the pattern is possessive or bounded, so that the time is linear for any input.
"""

from functools import lru_cache
from typing import Final

import regex

from elmokit.text.clitics import Clitics, clitics_of
from elmokit.text.languages import abbreviations
from elmokit.text.tokens import Token

# White space according to str.isspace, which is a little more than the \s of regex.
SPACE: Final = r"\s\x1c-\x1f"
# Characters that are tokens by themselves; the last four are Japanese marks that belong to no script.
CJK: Final = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\u30fc\uff70\uff9e\uff9f"

_CHUNK = regex.compile(rf"[^{SPACE}]++", regex.VERSION1)
_W = rf"[\p{{L}}\p{{M}}\p{{N}}_\u00ad\u200c\u200d--[{CJK}]]"  # letters, marks, digits, joiners, soft hyphens
_URL_CHARACTER = r"""[^\s<>"“”()\[\]{}]"""
_NOT_URL_END = r"(?<! [.,;:!?'’…] )"
_EMOJI_MODIFIER = r"[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]"
_HOSTS = "com|org|net|edu|gov|mil|info|biz|uk|io|de|fr|tv"
_FILES = "html?|php|pdf|docx?|xlsx?|pptx?|txt|jpe?g|png|gif|zip|exe"

# Brackets and quotes never begin a longer token; they come first for speed.
_SINGLE = rf"""[{CJK}]\p{{M}}*+ | [()\[\]{{}}"“”«»]\p{{M}}*+ | [\d\#*]\ufe0f?\u20e3"""
_WEB = rf"""
    # URLs, with brackets only in pairs and without punctuation at the end
    (?: (?:https?|ftp|file):// | www\. ) (?: {_URL_CHARACTER} | \([^\s<>"()]*+\) )* {_NOT_URL_END}
    # e-mail addresses
    | \w[\w.+%-]{{0,63}}+ @ \w[\w-]{{0,62}}+ (?: \.\w[\w-]{{0,62}}+ ){{0,8}}+
    # dotted names of three parts or more; host names and file names
    | (?<![\w.]) \p{{Ll}}{{2}}[\w-]{{0,61}}+ (?: \.\p{{Ll}}[\w-]{{0,62}}+ ){{2,8}}+ (?![\w@.])
    | (?<![\w.]) \w[\w-]{{0,62}}+ (?: \.\w[\w-]{{0,62}}+ ){{1,4}} (?<= \.(?i:{_HOSTS}|{_FILES}) ) (?![\w@-])
      (?: /{_URL_CHARACTER}* {_NOT_URL_END} )?
    # emoticons that begin with a letter
    | (?<!\w)(?: [xX]D++ | [oO][_.][oO] | T[_.]T ) (?![/\w])
"""
_SIGNS = rf"""
    # mentions and hashtags
    (?<![\w&]) [@\#] [\p{{L}}_]\w*+
    # emoticons
    | [<>]?[:;=][-'’^]?[)(\]\[|\\]++ (?![/\w])
    | (?<!\w)(?: [:;=][-'’^]?[DPpOoSs3/]++ | <3++ | \^[_.]?\^ | -[_.]++- ) (?![/\w])
    # runs of dots, dashes, question or exclamation marks, and other repeated signs
    | \.{{2,}}+ | …++ | [-‐‑–—]{{2,}}+ | [!?]++ | \.[!?]++ | (?P<sign>[=_*~+\#^|<>,`$])(?P=sign)++ | '' | ’’
    # emoji, with joiners, skin tones and flags
    | \p{{RI}}\p{{RI}}
    | [\p{{Extended_Pictographic}}--[©®™\d\#*]] {_EMOJI_MODIFIER}*+
      (?: \u200d\p{{Extended_Pictographic}}{_EMOJI_MODIFIER}*+ )*+ [\U000e0020-\U000e007f]*+
"""


class RuleTokenizer:
    """Tokenizer by rules; see `make_tokenizer`.

    Args:
        language: A code of `LANGUAGES`, whose clitics and abbreviations are used, or None.
    """

    _CACHE_SIZE = 65_536  # chunks; the cache is emptied when full
    _LONGEST_CACHED = 48

    def __init__(self, language: str | None) -> None:
        self._clitics = clitics_of(language)
        self._pattern = _pattern(language)
        self._cache: dict[str, list[str]] = {}

    def __call__(self, text: str) -> list[Token]:
        """Tokenise a text."""
        tokens = []
        for match in _CHUNK.finditer(text):
            chunk = match.group()
            start = match.start()
            for piece in self._cache.get(chunk) or self._split(chunk):
                end = start + len(piece)
                tokens.append(Token(piece, start, end))
                start = end
        return tokens

    def words(self, text: str) -> list[str]:
        """Tokenise a text without offsets, in about half the time."""
        cache = self._cache
        words: list[str] = []
        for chunk in text.split():
            words += cache.get(chunk) or self._split(chunk)
        return words

    def _split(self, chunk: str) -> list[str]:
        """Split a chunk without white space into tokens, and cache them."""
        pieces: list[str] = []
        if chunk.isascii() and chunk.isalpha():
            pieces = self._clitics.split(chunk)  # the most frequent case needs no pattern
        else:
            for match in self._pattern.finditer(chunk):
                word = match.group()
                pieces += self._clitics.split(word) if match.lastgroup == "word" else [word]
        if len(chunk) <= self._LONGEST_CACHED:
            if len(self._cache) >= self._CACHE_SIZE:
                self._cache.clear()
            self._cache[chunk] = pieces
        return pieces


@lru_cache(maxsize=16)
def _pattern(language: str | None) -> "regex.Pattern[str]":
    """Compile the pattern of a language."""
    clitics = clitics_of(language)
    source = rf"""
    {_SINGLE}
    | (?<! {_W} ) (?i: {clitics.alone} ) (?! {_W} )
    | (?= {_W} ) (?: {_WEB} | {_numbers(clitics)} | {_words(language, clitics)} )
    | (?<! \. | {_W} ) \.\d++ (?! {_W} )
    | {_SIGNS}
    | [^{SPACE}]\p{{M}}*+
    """
    return regex.compile(source, regex.VERBOSE | regex.VERSION1)


def _numbers(clitics: Clitics) -> str:
    """Return the pattern of dates, telephone numbers, times and other numbers."""
    # In most languages a hyphen joins a number to a word: "15-jährig".
    free = rf"(?! {_W} | ['’]s )" if clitics.hyphens else rf"(?! -?{_W} )"
    end = rf"(?: {free} | (?= (?i:{clitics.units}) (?!{_W}) ) )"
    return rf"""
    (?=\d) (?<! {_W} | {_W}['’] ) (?:
        (?: \d{{1,4}}(?: /\d{{1,2}}/ | -\d{{1,2}}- )\d{{2,4}} | \d{{1,2}}/\d{{1,2}} ) (?! [/-]?\d | {_W} )
        | (?<! \d- ) (?: \d{{1,4}}- ){{0,2}}\d{{3}}-\d{{4}} (?! -\d | {_W} )
        | (?: \d++ (?: :\d\d )++ | \d++ (?: [.,]\d++ )*+ ) {end}
    )
    """


def _words(language: str | None, clitics: Clitics) -> str:
    """Return the pattern of abbreviations and words."""
    known = "|".join(regex.escape(word) for word in sorted(abbreviations(language), key=len, reverse=True))
    word = rf"{_W}++ (?: ['’`´]\p{{L}}++ )*+" if clitics.hyphens else rf"{_W}++ (?: [-‐‑'’]{_W}++ )*+"
    return rf"""
    (?<! {_W} ) (?:
        (?: \p{{L}}\. ){{2,}}+ (?! {_W} ) | (?: \p{{L}}\. )++\p{{L}} (?! {_W} )
        | \p{{Lu}}\. (?! {_W} ) | (?i: {known} )\. (?! {_W} )
        | \p{{Lu}}++ & \p{{Lu}}++ (?! {_W} )
    )
    | (?P<word> (?: (?<! {_W} ) (?i: {clitics.prefixes} )-(?={_W}) )? {word} )
    """
