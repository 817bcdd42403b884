"""The classic mistakes in a text that is to be given to a model, by name."""

import re
from collections.abc import Iterable, Iterator

from elmokit.doctor.model_doctor import Finding, Level

# What a line should not hold, and what to do about it.
_LINE_CHECKS: list[tuple[Level, str, re.Pattern[str], str]] = [
    (
        "warning",
        "HTML entities",
        re.compile(r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|amp|apos|gt|lt|nbsp|quot);", re.IGNORECASE),
        "the model would read them letter by letter: unescape the text first (Python: html.unescape)",
    ),
    (
        "warning",
        "printed Python lists",
        re.compile(r"""^\s*[\[(]\s*(['"]).*\1\s*,?\s*[\])]\s*$"""),
        "brackets and quotes would be read as words: write the words with blanks between them",
    ),
    (
        "warning",
        "characters that could not be decoded (U+FFFD)",
        re.compile("\ufffd"),
        "what they were is lost: decode the source again with its right encoding",
    ),
    (
        "warning",
        "UTF-8 that was decoded as Latin-1",
        re.compile(r"[ÂÃ][\x80-\xbf‚ƒ„…†‡ˆ‰Š‹Œ‘’“”•–—˜™š›œ€]|â€[\x80-\x9f™œ“”˜¦]"),
        "decode the source again as UTF-8 (or repair it with ftfy)",
    ),
    (
        "warning",
        "treebank brackets",
        re.compile(r"(?:^|\s)-[LR][RCS]B-(?=\s|$)"),
        "published models were trained on ( and ): write those",
    ),
    ("warning", "byte order marks", re.compile("\ufeff"), "remove U+FEFF: it becomes part of a word"),
    ("warning", "NUL bytes", re.compile("\0"), "the file is binary or UTF-16: convert it to UTF-8"),
    (
        "note",
        "lines of more than 5,000 characters",
        re.compile(r".{5001}", re.DOTALL),
        "a line is read as one sentence: use split=True for running text",
    ),
]
_STANDING_APART = re.compile(r"\S (?:[.,!?;:]|n't|'s)(?= |$)")
_ATTACHED = re.compile(r"\w(?:[.,!?;:]|n't|'s)(?=\s|$)")
_ENOUGH_LETTERS = 200  # below that a text may have no capital by chance


def diagnose_text(lines: Iterable[str], *, cased: bool = True) -> list[Finding]:
    """Look for the classic mistakes in a text that is to be embedded.

    Args:
        lines: the text; it is read once and not kept.
        cased: whether the model was trained on text with its capitals.

    Example:
        >>> diagnose_text(["Tom &amp; Jerry"])[0].message[:44]
        "HTML entities: '&amp;' in line 1, 1 line in "
    """
    first: dict[str, tuple[str, int]] = {}
    hits = dict.fromkeys((name for _, name, _, _ in _LINE_CHECKS), 0)
    total = upper = lower = words = single = apart = attached = 0
    for total, line in enumerate(lines, start=1):
        for _, name, pattern, _ in _LINE_CHECKS:
            if found := pattern.search(line):
                hits[name] += 1
                first.setdefault(name, (found.group()[:30], total))
        upper += sum(map(str.isupper, line))
        lower += sum(map(str.islower, line))
        tokens = line.split()
        words += len(tokens)
        # Only letters that have case: single Chinese characters are words in their own right.
        single += sum(len(token) == 1 and token.lower() != token.upper() for token in tokens)
        apart += _STANDING_APART.search(line) is not None
        attached += _ATTACHED.search(line) is not None
    findings = [
        Finding(
            level, f"{name}: {first[name][0]!r} in line {first[name][1]}, {_lines(hits[name])} in all; {hint}"
        )
        for level, name, _, hint in _LINE_CHECKS
        if hits[name]
    ]
    findings += _of_the_whole(cased, upper, lower, words, single, apart, attached)
    return findings or [Finding("ok", f"{_lines(total)}: none of the classic mistakes")]


def _of_the_whole(
    cased: bool, upper: int, lower: int, words: int, single: int, apart: int, attached: int
) -> Iterator[Finding]:
    if not words:
        yield Finding("warning", "there is no text in it")
    if cased and lower >= _ENOUGH_LETTERS and upper * 1000 < lower:
        yield Finding(
            "warning",
            f"lower-cased: {upper:,} capitals among {upper + lower:,} letters, but the model was trained on "
            "text as it is written; give it the text with its capitals",
        )
    if words >= 10 and single * 2 > words:
        yield Finding(
            "warning",
            f"letters in place of words: {single:,} of {words:,} words are single letters; a string was "
            "taken for a list of tokens somewhere, which makes each character a token: split it first",
        )
    if apart > 4 * attached:
        yield Finding(
            "note",
            f"tokenised already: in {_lines(apart)} punctuation stands apart; use tokens=True, so that "
            "the tokens are used as they are",
        )


def _lines(count: int) -> str:
    return f"{count:,} line{'' if count == 1 else 's'}"
