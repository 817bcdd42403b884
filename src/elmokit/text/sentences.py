"""Split running text into sentences, by rules and in linear time."""

from collections.abc import Iterable, Iterator

import regex

from elmokit.text.languages import BY_CHARACTER, ORDINAL_STOP, abbreviations, primary

_Span = tuple[int, int]

_MAX_PARAGRAPH = 100_000  # characters; a longer paragraph is split before its end is read
_WORD_REACH = 24  # characters read before and after a stop; longer than any abbreviation

_LETTERS_AND_STOPS = regex.compile(r"(?:\p{L}\.)++\p{L}")
_BLANK_LINES = regex.compile(r"\n[^\S\n]*+(?:\n[^\S\n]*+)++")
_CLOSERS = r"""['"’”“»«›‹)\]}]"""
_CLOSERS_CJK = r"""[”’」』】）)》〉"']"""
_FACE = r"[:;=][-'^]?(?:[)(]++|[DP](?!\w))(?=\s|\Z)"  # an emoticon belongs to the sentence before it
_STOP = rf"""
    [.!?…؟۔।॥։።។၊။]++ (?P<close>{_CLOSERS}*+(?:\s»)?+) (?:\[\d{{1,3}}\]){{0,9}}+ (?=\s|\Z) (?:\ {_FACE})?+
    | [。！？｡]++ (?P<close>{_CLOSERS_CJK}*+)
    | (?<=\s) {_FACE}
"""
_STOP_GREEK = rf"{_STOP} | ;(?=\s|\Z)"  # the Greek question mark
_STOP_CJK = rf"(?: [。！？!?；｡]++…*+ | …++ ) (?P<close>{_CLOSERS_CJK}*+)"
_CJK_GOES_ON = frozenset("，、：；,;。！？!?…”’」』】）)》〉")

# A stop after a word too long for most abbreviations, and a capital; or a Chinese stop and more text.
_CLEAR_END = regex.compile(
    rf"""\p{{Ll}}{{4}}[.!?]{_CLOSERS}*+\s++['"‘“«(\[]?\p{{Lu}} | [。！？]{_CLOSERS_CJK}*+\s*+\w""",
    regex.VERBOSE,
)

# Abbreviations that never end a sentence.
_NEVER_LAST_WORDS = """
    mr mrs ms messrs mmes dr prof rev hon gen col capt lt sgt cmdr adm maj sen rep gov pres supt st mt ft
    vs eg ie fig vol nos pp cf ca approx
"""
_NEVER_LAST = frozenset(_NEVER_LAST_WORDS.split())
# Too long for an abbreviation: a stop after it ends a sentence even if the next word is in lower case.
_PLAIN_WORD = regex.compile(r"(?<!\S)\p{Ll}{5,}+$")
# Capitalised words that start an English sentence even after an abbreviation.
_STARTER_WORDS = """
    A After All Although An And Another Any As At Because Before Both But By Can Did Do Does During Each
    Even Every For From Had Has Have He Her Here His How However I If In Is It It's Its Just Let Like Many
    Maybe More Most My No Not Now Of On Once One Or Other Our Perhaps Please She Since So Some Still Such
    Thank Thanks That The Their Then There These They This Those Though Thus To Under Until Was We Were
    What When Where Whether Which While Who Why Will With Would Yes Yet You Your
"""
_STARTERS = frozenset(_STARTER_WORDS.split())
# Abbreviations of "and so on", which can end a sentence.
_AND_SO_ON = frozenset(("etc", "ecc", "usw", "osv", "enz", "itd", "itp", "atd", "atď", "jne", "stb"))


def split_sentences(text: str, language: str) -> list[tuple[int, int]]:
    """Find the sentences of a running text.

    A blank line always ends a sentence, a single line break never does. A stop ends a sentence unless it
    belongs to an abbreviation, an initial or a number, or the next word is in lower case.

    Args:
        text: The text.
        language: An ISO 639 code such as `en` or `zh`.

    Returns:
        Spans (start, end) in order, without white space around them; together they cover all other text.

    Raises:
        ConfigError: The language is not known.

    Example:
        >>> text = "Dr. Smith paid $3.50. He left."
        >>> [text[start:end] for start, end in split_sentences(text, "en")]
        ['Dr. Smith paid $3.50.', 'He left.']
    """
    splitter = _Splitter(primary(language))
    spans = []
    start = 0
    for match in _BLANK_LINES.finditer(text):
        spans += splitter.split(text, start, match.start())
        start = match.end()
    return spans + splitter.split(text, start, len(text))


def has_several_sentences(line: str) -> bool:
    """Return whether a line clearly holds more than one sentence, whatever its language.

    Example:
        >>> has_several_sentences("It was late. We left."), has_several_sentences("Dr. Smith left.")
        (True, False)
    """
    return _CLEAR_END.search(line) is not None


def sentences_from_lines(lines: Iterable[str], language: str) -> Iterator[str]:
    """Find the sentences of a text that is given as lines, with bounded memory.

    Consecutive lines are joined into a paragraph, since text may be wrapped; a blank line ends it. A
    paragraph beyond 100,000 characters is split before its end is read, at the last sentence end or, if there
    is none, at the end of a line.

    Args:
        lines: The lines, with or without their line breaks.
        language: An ISO 639 code such as `en` or `zh`.

    Yields:
        The sentences, without line breaks.

    Raises:
        ConfigError: The language is not known.

    Example:
        >>> list(sentences_from_lines(["It was", "late. We left.", "", "Next day"], "en"))
        ['It was late.', 'We left.', 'Next day']
    """
    code = primary(language)
    splitter = _Splitter(code)
    held: list[str] = []
    size = 0
    for line in lines:
        line = line.strip()
        if line:
            held.append(line)
            size += len(line)
        if held and (not line or size > _MAX_PARAGRAPH):
            sentences = splitter.sentences(_join(held, code))
            held = [sentences.pop()] if line and len(sentences) > 1 else []
            size = sum(map(len, held))
            yield from sentences
    yield from splitter.sentences(_join(held, code))


class _Splitter:
    """The rules of one language."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._abbreviations = abbreviations(language)
        source = _STOP_CJK if language in BY_CHARACTER else _STOP_GREEK if language == "el" else _STOP
        self._stop = regex.compile(source, regex.VERBOSE)

    def sentences(self, text: str) -> list[str]:
        """Return the sentences of one paragraph."""
        return [text[start:end] for start, end in self.split(text, 0, len(text))]

    def split(self, text: str, start: int, end: int) -> list[_Span]:
        """Split one paragraph, `text[start:end]`."""
        spans = []
        start, end = _trim(text, start, end)
        for match in self._stop.finditer(text, start, end):
            if match.end() < end and self._is_end(text, start, match):
                spans.append((start, match.end()))
                start = _trim(text, match.end(), end)[0]
        return [*spans, (start, end)] if start < end else spans

    def _is_end(self, text: str, start: int, match: "regex.Match[str]") -> bool:
        """Return whether a stop inside a paragraph ends the sentence that began at `start`."""
        if self._language in BY_CHARACTER:
            return text[match.end()] not in _CJK_GOES_ON
        stop = match.group()
        following = text[match.end() : match.end() + _WORD_REACH].lstrip()
        upcoming = following.lstrip("'\"‘“«‹([{„‚*_-–—¿¡ ")
        if following.startswith((",", ";", ".", "!", "?")):
            return False
        if stop[0] not in ".…":  # after ! or ?, only the sentence around a quotation continues
            return not (match["close"] and upcoming[:1].islower())
        before = text[max(start, match.start() - _WORD_REACH) : match.start()]
        if upcoming[:1].islower():
            careless = stop == "." and (_PLAIN_WORD.search(before) or upcoming.startswith(("i ", "i'", "i’")))
            return self._language == "en" and bool(careless)
        if stop.startswith(("…", "..")):
            return True
        return not self._belongs_to_word(before, upcoming)

    def _belongs_to_word(self, before: str, upcoming: str) -> bool:
        """Return whether the full stop after `before` belongs to an abbreviation, an initial or a number."""
        word = before.split()[-1].lstrip("'\"‘“«‹([{„‚*_-–—") if before.strip() else ""
        lower = word.lower()
        following = (upcoming.split() or [""])[0].rstrip(".,;:!?'\"’”)")
        if not word or (word == before and len(word) <= 2 and not lower.isalpha()):
            return True  # the number of a list item
        if word.isdigit():
            return self._language in ORDINAL_STOP and len(word) <= 2
        if lower == "no" and following.isdigit():
            return True
        if len(word) == 1 and word.isupper():
            return word != "I"
        if lower in self._abbreviations or _LETTERS_AND_STOPS.fullmatch(word):
            if lower in _NEVER_LAST:
                return True
            return following not in _STARTERS if self._language == "en" else lower not in _AND_SO_ON
        return False


def _trim(text: str, start: int, end: int) -> _Span:
    """Return a span without the white space around it."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def _join(lines: list[str], language: str) -> str:
    """Join wrapped lines with spaces; in Chinese and the like, only between ASCII characters."""
    if language not in BY_CHARACTER:
        return " ".join(lines)
    joined: list[str] = []
    for line in lines:
        if joined and joined[-1][-1].isascii() and line[0].isascii():
            joined.append(" ")
        joined.append(line)
    return "".join(joined)
