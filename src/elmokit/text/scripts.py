"""Which scripts a text is written in, to notice a text that a model was not trained on."""

from collections import Counter
from collections.abc import Iterable

import regex

from elmokit.text.rules import CJK

_NAMES = (
    *("Latin", "Cyrillic", "Greek", "Arabic", "Hebrew", "Devanagari", "Bengali", "Tamil", "Telugu", "Thai"),
    *("Georgian", "Armenian", "Hangul"),
)
# Scripts are compared by their words, of which those without blanks between them have one in two characters.
_WORDS = regex.compile(
    "|".join(
        [
            *(rf"(?P<{name}>\p{{{name}}}{'{1,4}' if name == 'Thai' else '+'})" for name in _NAMES),
            f"(?P<Chinese>[{CJK}]{{1,2}})",
        ]
    ),
    regex.VERSION1,
)
_SAMPLE = 2000  # words of a vocabulary, which has the commonest first


def count_scripts(text: str) -> Counter[str]:
    """Return how many words of each script a text has, more or less; kana count as Chinese.

    >>> count_scripts("river bank 银行")
    Counter({'Latin': 2, 'Chinese': 1})
    """
    return Counter(str(match.lastgroup) for match in _WORDS.finditer(text))


def known_scripts(words: Iterable[str]) -> frozenset[str]:
    """Return the scripts that at least a hundredth of a vocabulary's commonest words are written in.

    >>> sorted(known_scripts(["the", "银", "of"]))
    ['Chinese', 'Latin']
    """
    words = list(words)[:_SAMPLE]
    found: Counter[str] = Counter()
    for word in words:
        found.update(set(count_scripts(word)))
    return frozenset(name for name, count in found.items() if count * 100 >= len(words))


def foreign_script(counts: Counter[str], known: frozenset[str]) -> str | None:
    """Return the script that most words of a text are in, if it is none of the known ones.

    >>> foreign_script(count_scripts("我在 bank 工作吗？"), frozenset(["Latin"]))
    'Chinese'
    """
    if not counts or not known:
        return None
    name, count = counts.most_common(1)[0]
    return name if name not in known and 2 * count > sum(counts.values()) else None
