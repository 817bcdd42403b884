"""Where words are split into tokens, by language: clitics, contractions, hyphens and units."""

from dataclasses import dataclass, field

import regex

_FLAGS = regex.VERBOSE | regex.VERSION1 | regex.IGNORECASE

_FUSED = """
    can|not gon|na wan|na got|ta gim|me lem|me do|nt wo|nt ca|nt did|nt does|nt is|nt was|nt were|nt
    are|nt could|nt would|nt should|nt have|nt has|nt had|nt ai|nt i|m i|ve that|s what|s there|s he|s
    she|s you|re they|re you|ll they|ll it|ll
"""
_LONGEST_TAIL = len("-t-elles")
_PRONOUNS_FR = "je|tu|il|elle|on|nous|vous|ils|elles|ce|moi|toi|le|la|les|lui|leur|y|en"


@dataclass(frozen=True, kw_only=True)
class Clitics:
    """How the words of a language are split.

    Attributes:
        head: Pattern of clitics at the beginning of a word, such as the French l'.
        tail: Pattern of clitics at the end of a word, such as the English 's.
        alone: Pattern of tokens that begin or end with an apostrophe or a hyphen.
        fused: Contractions without an apostrophe, lower-cased, and the length of their first part.
        whole: Lower-cased words that look as if they had a clitic but have none.
        hyphens: Whether a hyphen inside a word is a token, as in the English treebanks.
        prefixes: Pattern of prefixes that stay attached to the next word, as in e-mail.
        units: Pattern of units that are split off the number before them, as in 5km.
    """

    head: "regex.Pattern[str] | None" = None
    tail: "regex.Pattern[str] | None" = None
    alone: str = r"(?!)"
    fused: dict[str, int] = field(default_factory=dict)
    whole: frozenset[str] = frozenset()
    hyphens: bool = False
    prefixes: str = r"(?!)"
    units: str = r"(?!)"

    def split(self, word: str) -> list[str]:
        """Split one word into tokens.

        Example:
            >>> clitics_of("en").split("shouldn't've")
            ['should', "n't", "'ve"]
            >>> clitics_of("fr").split("qu'a-t-il")
            ["qu'", 'a', '-t-il']
        """
        lower = word.lower()
        if lower in self.whole:
            return [word]
        if lower in self.fused and len(lower) == len(word):
            return [word[: self.fused[lower]], word[self.fused[lower] :]]
        start, end = 0, len(word)
        heads, tails = [], []
        while self.head and (match := self.head.match(word, start)):
            heads.append(match.group())
            start = match.end()
        # Search only the last few characters, so that the time stays linear.
        while self.tail and (match := self.tail.search(word, max(start, end - _LONGEST_TAIL), end)):
            tails.append(match.group())
            end = match.start()
        return [*heads, word[start:end], *reversed(tails)]


def _head(pattern: str) -> "regex.Pattern[str]":
    compiled: regex.Pattern[str] = regex.compile(rf"(?:{pattern})['’](?=\p{{L}})", _FLAGS)
    return compiled


_ENGLISH = Clitics(
    tail=regex.compile(r"(?<=\p{L}) (?: n['’`´]t | ['’`´](?:s|m|d|re|ve|ll) ) $", _FLAGS),
    alone=r"n['’`´]t | ['’`´](?:s|m|d|re|ve|ll|em|tis|twas|til|cause|bout|\d\ds?) | \d++['’]s",
    fused={word.replace("|", ""): word.index("|") for word in _FUSED.split()},
    hyphens=True,
    prefixes="e|non|mid|pre|anti|re|post|co|pro|multi|ex|sub|semi|neo|un|micro|intra|inter|counter|arch|socio|psycho"
    "|ultra|super|hyper|pseudo|quasi|mini|macro|mega|trans|bi|tri|de",
    units="a\\.?m\\.?|p\\.?m\\.?|mm|cm|km|m|kg|mg|lbs?|oz|ft|k|b|hrs?|mins?|yrs?|mph|[kmgt]b|mw|mhz|ghz|hz|x|cc",
)
_BY_LANGUAGE = {
    "en": _ENGLISH,
    "fr": Clitics(
        head=_head("[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu"),
        tail=regex.compile(rf"(?<=\p{{L}}) -(?:t-)?(?:{_PRONOUNS_FR}) $", _FLAGS),
        alone=rf"-(?:t-)?(?:{_PRONOUNS_FR})(?!-)",
        whole=frozenset(
            {"aujourd'hui", "aujourd’hui", "d'abord", "d’abord", "rendez-vous", "chez-moi", "chez-nous"}
        ),
    ),
    "it": Clitics(head=_head(r"\p{L}++"), alone=r"(?:po|mo|be)['’]"),
    "ca": Clitics(
        head=_head("[dlmnst]"), tail=regex.compile(r"(?<=\p{L}) ['’](?:l|ls|n|m|t|s|ns|hi|ho) $", _FLAGS)
    ),
    "oc": Clitics(head=_head("[cdjlmnst]|qu")),
    "pt": Clitics(head=_head("d")),
    "nl": Clitics(alone="['’](?:s|t|n|k|m)"),
    "de": Clitics(alone="['’](?:s|n|ne|nen)"),
}


def clitics_of(language: str | None) -> Clitics:
    """Return the clitics of a language; none for a language without rules."""
    return _BY_LANGUAGE.get(language or "", Clitics())
