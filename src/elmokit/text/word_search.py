"""Find a word among tokens; it may consist of several, as Chinese words do if each character is a token."""

from collections.abc import Sequence
from typing import TypeAlias

import regex

from elmokit.errors import ConfigError
from elmokit.text.rules import CJK
from elmokit.text.tokens import Token

Run: TypeAlias = tuple[int, int]  # positions of the first token and of the one after the last

_CJK = rf"[{CJK}||\p{{Hangul}}]"
_BLANK_IN_CJK = regex.compile(rf"(?<={_CJK})\s+(?={_CJK})", regex.VERSION1)
_BLANKS = regex.compile(r"\s+")


def find_word(
    tokens: Sequence[str], offsets: Sequence[Run], word: str, *, match_case: bool = True
) -> list[Run]:
    """Return where a word stands among the tokens of a sentence, from left to right and without overlap.

    Only whole tokens count: "bank" is not found in "banks". A blank of the word must be between tokens, too;
    between two Chinese or Japanese characters blanks do not matter.

    Args:
        tokens: The tokens.
        offsets: Start and end of each token in the text.
        word: One word, or several.
        match_case: Whether upper and lower case are different.

    Raises:
        ConfigError: The word is empty.

    Example:
        >>> find_word(["银", "行", "加", "息"], [(0, 1), (1, 2), (2, 3), (3, 4)], "银行")
        [(0, 2)]
        >>> find_word(["The", "Bank"], [(0, 3), (4, 8)], "bank", match_case=False)
        [(1, 2)]
    """
    wanted = _plain(word, match_case=match_case)
    if not wanted:
        raise ConfigError(f"expected a word, found {word!r}")
    runs: list[Run] = []
    start = 0
    while start < len(tokens):
        joined, end = "", start
        while end < len(tokens) and len(joined) < len(wanted):
            gap = " " if end > start and offsets[end][0] > offsets[end - 1][1] else ""
            joined = _plain(f"{joined}{gap}{tokens[end]}", match_case=match_case)
            end += 1
            if not wanted.startswith(joined):
                break
        found = joined == wanted
        runs += [(start, end)] if found else []
        start = end if found else start + 1
    return runs


def find_one(tokens: Sequence[str], offsets: Sequence[Run], at: str | int) -> Run:
    """Return where a word stands that occurs once, in upper or lower case if need be; or a position's token.

    Args:
        tokens: The tokens.
        offsets: Start and end of each token in the text.
        at: One word, or several; or the position of a token.

    Raises:
        ConfigError: It is not there, or several times.

    Example:
        >>> find_one(["The", "bank"], [(0, 3), (4, 8)], "bank"), find_one(["The"], [(0, 3)], 0)
        ((1, 2), (0, 1))
    """
    if not isinstance(at, str):
        if not 0 <= at < len(tokens):
            raise ConfigError(f"at={at} is no position; expected one from 0 to {len(tokens) - 1}")
        return (at, at + 1)
    for match_case in (True, False):
        found = find_word(tokens, offsets, at, match_case=match_case)
        if len(found) == 1:
            return found[0]
        if found:
            places = ", ".join(str(start) for start, _ in found)
            raise ConfigError(
                f"{at!r} stands at the positions {places}; take one of them, such as at={found[0][0]}"
            )
    raise ConfigError(
        f"{at!r} is not among the words {' '.join(tokens):.200}; pass whole words, or a position"
    )


def may_contain(text: str, word: str) -> bool:
    """Return whether `find_word` could find the word in this text, whatever its tokens and case.

    >>> may_contain("The river bank.", "Bank"), may_contain("The river.", "bank")
    (True, False)
    """
    return _BLANKS.sub("", word).casefold() in _BLANKS.sub("", text).casefold()


def one_spelling(text: str, word: str) -> str:
    """Return the text with all uses of a word spelt as given, in upper and lower case; its length stays.

    >>> one_spelling("The Bank of England owns no BANKS.", "bank")
    'The bank of England owns no BANKS.'
    """
    parts = word.split()
    spelt, pattern = " ".join(parts), r"\s".join(map(regex.escape, parts))
    uses = regex.compile(rf"(?<!\w){pattern}(?!\w)", regex.IGNORECASE)
    return uses.sub(lambda use: spelt if len(use[0]) == len(spelt) else use[0], text) if parts else text


def group_tokens(tokens: Sequence[Run], words: Sequence[Token]) -> list[Run]:
    """Return which tokens each word consists of, both given by their place in the text.

    A token that crosses the end of a word belongs to the word that it starts in. A word without tokens is
    left out, and a token outside all words is a word of its own.

    Example:
        >>> group_tokens([(0, 1), (1, 2), (2, 3)], [Token("银行", 0, 2), Token("加", 2, 3)])
        [(0, 2), (2, 3)]
    """
    ends = iter([word.end for word in words])
    end = next(ends, 0)
    runs: list[Run] = []
    open_until = -1  # end of the word that the last run belongs to
    for position, (start, _) in enumerate(tokens):
        while end <= start and (following := next(ends, None)) is not None:
            end = following
        if runs and start < open_until:
            runs[-1] = (runs[-1][0], position + 1)
        else:
            runs.append((position, position + 1))
        open_until = end
    return runs


def _plain(text: str, *, match_case: bool) -> str:
    """Return the text with single blanks, none between Chinese characters; in one case if that is ignored."""
    text = _BLANK_IN_CJK.sub("", _BLANKS.sub(" ", text.strip()))
    return text if match_case else text.casefold()
