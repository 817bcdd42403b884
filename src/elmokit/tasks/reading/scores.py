"""Exact match and F1 of answers, by the official rules of SQuAD, and by those of CMRC 2018 for Chinese.

Both compare texts after taking out what does not matter. SQuAD counts the words that two answers share; CMRC,
for which a Chinese character is a word, the longest run of words that occurs in both.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from elmokit.tasks.core import Scores
from elmokit.tasks.reading.data import AskedPassage
from elmokit.tasks.reading.head import FoundAnswers

_RESAMPLES = 1000
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_CMRC_PUNCTUATION = "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』"
_CMRC_REMOVED = str.maketrans("", "", _CMRC_PUNCTUATION)
# Numbers such as 1,000 and 3.5 are one word, as for NLTK, which the official script uses.
_CMRC_WORDS = re.compile(r"[\u4e00-\u9fa5]|(?:[^\W\u4e00-\u9fa5]|(?<=\d)[.,](?=\d))+|[^\w\s]")


def squad_words(text: str) -> list[str]:
    """Return the words that count: in lower case, without punctuation and articles.

    Example:
        >>> squad_words("The U.S. army")
        ['us', 'army']
    """
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def squad_f1(truth: str, found: str) -> float:
    """Return the F1 of the words of two answers."""
    gold, words = squad_words(truth), squad_words(found)
    shared = sum((Counter(gold) & Counter(words)).values())
    return 2 * shared / (len(gold) + len(words)) if gold and words else float(gold == words)


def squad_exact(truth: str, found: str) -> float:
    """Return 1 if two answers are the same words."""
    return float(squad_words(truth) == squad_words(found))


def cmrc_words(text: str) -> list[str]:
    """Return Chinese characters, and the words between them, without punctuation.

    Example:
        >>> cmrc_words("《战国无双3》，ω-force")
        ['战', '国', '无', '双', '3ωforce']
    """
    return _CMRC_WORDS.findall(text.lower().strip().translate(_CMRC_REMOVED))


def cmrc_f1(truth: str, found: str) -> float:
    """Return the F1 of the longest run of words that two answers share."""
    gold, words = cmrc_words(truth), cmrc_words(found)
    longest, row = 0, [0] * (len(words) + 1)
    for word in gold:
        row = [0, *(row[place] + 1 if word == other else 0 for place, other in enumerate(words))]
        longest = max(longest, *row)
    return 2 * longest / (len(gold) + len(words)) if longest else 0.0


def cmrc_exact(truth: str, found: str) -> float:
    """Return 1 if two answers are the same without punctuation."""
    first, second = (text.lower().strip().translate(_CMRC_REMOVED) for text in (truth, found))
    return float(first == second)


def answer_text(example: AskedPassage, output: FoundAnswers) -> str:
    """Return the answer that was found, "" for none."""
    return "" if output.best is None else example.passage.text_of(output.best)


def score_answers(
    examples: Sequence[AskedPassage], outputs: Sequence[FoundAnswers], *, chinese: bool
) -> Scores:
    """Return F1 and exact match: the best over the true answers, averaged over the questions."""
    rules = (cmrc_f1, cmrc_exact) if chinese else (squad_f1, squad_exact)
    texts = [answer_text(example, output) for example, output in zip(examples, outputs, strict=True)]
    f1, exact = (
        np.array([_best(rule, example, text) for example, text in zip(examples, texts, strict=True)])
        for rule in rules
    )
    values = {"f1": float(f1.mean()), "exact_match": float(exact.mean())}
    answered = np.array([bool(example.answers) for example in examples])
    if not answered.all():
        for name, rows in (("answerable", answered), ("unanswerable", ~answered)):
            if rows.any():
                values |= {f"f1_{name}": float(f1[rows].mean())}
    random = np.random.default_rng(0)
    drawn = [f1[random.integers(len(f1), size=len(f1))].mean() for _ in range(_RESAMPLES)]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Scores("f1", values, (float(low), float(high)))


def _best(rule: Callable[[str, str], float], example: AskedPassage, found: str) -> float:
    if not example.answers or not found:
        return float(not example.answers and not found)
    return max(rule(truth, found) for truth in example.answers)
