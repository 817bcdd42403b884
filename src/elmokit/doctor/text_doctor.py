"""Find classic mistakes in a text before a model reads it."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from elmokit.doctor.model_doctor import Finding, Level
from elmokit.text import count_scripts, foreign_script, has_several_sentences

# Level, name and pattern of each mistake in a line, and what to do about it.
_LINE_CHECKS: list[tuple[Level, str, re.Pattern[str], str]] = [
    (
        "warning",
        "HTML entities",
        re.compile(r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|amp|apos|gt|lt|nbsp|quot);", re.IGNORECASE),
        "the model would read them letter by letter: unescape the text first (html.unescape)",
    ),
    (
        "warning",
        "printed Python lists",
        re.compile(r"""^\s*[\[(]\s*(['"]).*\1\s*,?\s*[\])]\s*$"""),
        "brackets and quotes would be read as words: write only the words, separated by blanks",
    ),
    (
        "warning",
        "characters that could not be decoded (U+FFFD)",
        re.compile("\ufffd"),
        "the original characters are lost: decode the source again with its true encoding",
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
        "published models were trained on ( and ): use these",
    ),
    ("warning", "byte order marks", re.compile("\ufeff"), "remove U+FEFF: it becomes part of a word"),
    ("warning", "NUL bytes", re.compile("\0"), "the file is binary or UTF-16: convert it to UTF-8"),
    (
        "note",
        "lines of more than 5,000 characters",
        re.compile(r".{5001}", re.DOTALL),
        "each line is one sentence: split running text into sentences (split=True)",
    ),
]
_SEPARATE = re.compile(r"\S (?:[.,!?;:]|n't|'s)(?= |$)")
_ATTACHED = re.compile(r"\w(?:[.,!?;:]|n't|'s)(?=\s|$)")
_ENOUGH_LETTERS = 200  # a shorter text may have no capitals by chance


def diagnose_text(
    lines: Iterable[str], *, cased: bool = True, known: frozenset[str] = frozenset()
) -> list[Finding]:
    """Find classic mistakes in a text before it is embedded.

    Args:
        lines: the text; it is read once and not kept.
        cased: whether the model was trained on text with capitals.
        known: the scripts of the text that the model was trained on, if that is known.

    Example:
        >>> diagnose_text(["Tom &amp; Jerry"])[0].message[:44]
        "HTML entities: '&amp;' in line 1, 1 line in "
    """
    first: dict[str, str] = {}
    count: Counter[str] = Counter()
    scripts: Counter[str] = Counter()
    for number, line in enumerate(lines, start=1):
        for _, name, pattern, _ in _LINE_CHECKS:
            if found := pattern.search(line):
                count[name] += 1
                first.setdefault(name, f"{found.group()[:30]!r} in line {number}")
        scripts.update(count_scripts(line))
        tokens = line.split()
        count.update(
            lines=1,
            upper=sum(map(str.isupper, line)),
            lower=sum(map(str.islower, line)),
            words=len(tokens),
            # Only letters that have case: a single Chinese character can be a word.
            single=sum(len(token) == 1 and token.lower() != token.upper() for token in tokens),
            separate=_SEPARATE.search(line) is not None,
            attached=_ATTACHED.search(line) is not None,
            several=has_several_sentences(line),
        )
    findings = [
        Finding(level, f"{name}: {first[name]}, {_lines(count[name])} in all; {hint}")
        for level, name, _, hint in _LINE_CHECKS
        if count[name]
    ]
    findings += _whole_text(count, cased=cased)
    if script := foreign_script(scripts, known):
        findings.append(
            Finding(
                "warning",
                f"another script: most words are {script}, but the model was trained on "
                f"{' and '.join(sorted(known))} text; use a model of that language",
            )
        )
    return findings or [Finding("ok", f"{_lines(count['lines'])}: none of the classic mistakes")]


def _whole_text(count: Counter[str], *, cased: bool) -> Iterator[Finding]:
    upper, lower, words, single = (count[name] for name in ("upper", "lower", "words", "single"))
    if not words:
        yield Finding("warning", "the text is empty")
    if cased and lower >= _ENOUGH_LETTERS and upper * 1000 < lower:
        yield Finding(
            "warning",
            f"lower-cased: {upper:,} capitals among {upper + lower:,} letters, but the model was trained on "
            "text with capitals; do not lower-case the text",
        )
    if words >= 10 and single * 2 > words:
        yield Finding(
            "warning",
            f"letters instead of words: {single:,} of {words:,} words are single letters; somewhere a string "
            "was used as a list of tokens, which makes each character a token: split it into words first",
        )
    if count["several"] > max(2, count["lines"] / 2):
        yield Finding(
            "note",
            f"running text: {_lines(count['several'])} of {count['lines']:,} hold several sentences; each "
            "line is one sentence to the model: split them (split=True)",
        )
    if count["separate"] > 4 * count["attached"]:
        yield Finding(
            "note",
            f"tokenised already: in {_lines(count['separate'])} punctuation is separated by blanks; "
            "keep these tokens (tokens=True)",
        )


def _lines(count: int) -> str:
    return f"{count:,} line{'' if count == 1 else 's'}"
