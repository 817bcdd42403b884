"""The rule tokenizer for scripts that put blanks between words.

A text is cut at white space first; each piece between blanks is then cut by one pattern whose alternatives
are tried in order at each place, and at last by the clitics of the language. A piece is looked at by itself,
without its neighbours, so results can be kept: most pieces of a text are old acquaintances.

Every alternative is possessive or bounded, so that the time stays linear whatever is fed in.
"""

from functools import lru_cache
from typing import Final

import regex

from elmokit.text.clitics import Clitics, clitics_of
from elmokit.text.languages import abbreviations
from elmokit.text.tokens import Token

# What str.isspace says, which is a little more than the \s of regex.
SPACE: Final = r"\s\x1c-\x1f"
# Characters that are words by themselves; the last four are marks of length and voice, of no one script.
CJK: Final = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\u30fc\uff70\uff9e\uff9f"

_CHUNK = regex.compile(rf"[^{SPACE}]++", regex.VERSION1)
_W = rf"[\p{{L}}\p{{M}}\p{{N}}_\u00ad\u200c\u200d--[{CJK}]]"  # letters, marks, digits, joiners, soft hyphens
_URL_CHARACTER = r"""[^\s<>"“”()\[\]{}]"""
_NOT_URL_END = r"(?<! [.,;:!?'’…] )"
_EMOJI_MODIFIER = r"[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]"
_HOSTS = "com|org|net|edu|gov|mil|info|biz|uk|io|de|fr|tv"
_FILES = "html?|php|pdf|docx?|xlsx?|pptx?|txt|jpe?g|png|gif|zip|exe"

# Brackets and quotes begin nothing longer, so they go first, for speed.
_SINGLE = rf"""[{CJK}]\p{{M}}*+ | [()\[\]{{}}"“”«»]\p{{M}}*+ | [\d\#*]\ufe0f?\u20e3"""
_WEB = rf"""
    # URLs, with brackets only in pairs and without the punctuation of the sentence
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
    # runs: dots, dashes, stops, and lines drawn with signs
    | \.{{2,}}+ | …++ | [-‐‑–—]{{2,}}+ | [!?]++ | \.[!?]++ | (?P<sign>[=_*~+\#^|<>,`$])(?P=sign)++ | '' | ’’
    # emoji, with their joiners, skins and flags
    | \p{{RI}}\p{{RI}}
    | [\p{{Extended_Pictographic}}--[©®™\d\#*]] {_EMOJI_MODIFIER}*+
      (?: \u200d\p{{Extended_Pictographic}}{_EMOJI_MODIFIER}*+ )*+ [\U000e0020-\U000e007f]*+
"""


class RuleTokenizer:
    """Tokens by rules; see `make_tokenizer`.

    Args:
        language: A code of `LANGUAGES` whose clitics and abbreviations to know, or None for none.
    """

    _MAX_KEPT = 65_536  # pieces; the store is emptied when full
    _MAX_KEPT_LENGTH = 48

    def __init__(self, language: str | None) -> None:
        self._clitics = clitics_of(language)
        self._pattern = _pattern(language)
        self._kept: dict[str, list[str]] = {}

    def __call__(self, text: str) -> list[Token]:
        """Cut a text into tokens."""
        tokens = []
        for match in _CHUNK.finditer(text):
            chunk = match.group()
            start = match.start()
            for piece in self._kept.get(chunk) or self._cut(chunk):
                end = start + len(piece)
                tokens.append(Token(piece, start, end))
                start = end
        return tokens

    def words(self, text: str) -> list[str]:
        """Cut a text into tokens without their places, in about half the time."""
        kept = self._kept
        words: list[str] = []
        for chunk in text.split():
            words += kept.get(chunk) or self._cut(chunk)
        return words

    def _cut(self, chunk: str) -> list[str]:
        """Cut a piece between blanks, and keep the result."""
        pieces: list[str] = []
        if chunk.isascii() and chunk.isalpha():
            pieces = self._clitics.cut(chunk)  # the most frequent case needs no pattern
        else:
            for match in self._pattern.finditer(chunk):
                pieces += self._clitics.cut(match.group()) if match.lastgroup == "word" else [match.group()]
        if len(chunk) <= self._MAX_KEPT_LENGTH:
            if len(self._kept) >= self._MAX_KEPT:
                self._kept.clear()
            self._kept[chunk] = pieces
        return pieces


@lru_cache(maxsize=16)
def _pattern(language: str | None) -> "regex.Pattern[str]":
    """Compile the whole pattern of a language."""
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
    """Write the pattern of dates, telephones, times, decimals and thousands."""
    # In most languages a number is bound to a word by a hyphen: "15-jährig".
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
    """Write the pattern of abbreviations and words."""
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
