"""How good and how varied replies are.

distinct_n      different runs of n words, over all runs of n words of all replies (Li et al. 2016)
hits_at_k       how often the true reply is among the k of 20 candidates that are nearest to the one written;
                the others are replies to other dialogues, always the same
retrieved_at_k  the same for those nearest to the dialogue: what one gets by searching, without writing

Near is the cosine of the words' TF-IDF weights; where two candidates are equally near, the true one is last.
"""

import math
import random
from collections import Counter
from collections.abc import Sequence

from elmokit.tasks.core import Scores
from elmokit.tasks.seq2seq import TextPair, split, text_scores

CANDIDATES = 20
_AT = (1, 5)
_SEED = 0  # of the candidates: all models see the same

Words = Sequence[str]
Weights = dict[str, float]


def reply_scores(examples: Sequence[TextPair], texts: Sequence[str], *, words: str, blanks: bool) -> Scores:
    """Return BLEU, chrF, distinct-n and hits of replies, each from 0 to 1; chrF decides.

    Args:
        examples: with the true replies.
        texts: the replies that were written.
        words: sacrebleu's tokenizer.
        blanks: whether words have blanks between them; else each character is one.
    """
    kind = "words" if blanks else "characters"
    written, true, read = (
        [[word.strip("▁").lower() for word in split(text, kind)] for text in some]  # type: ignore[arg-type]
        for some in (
            texts,
            [example.target for example in examples],
            [" ".join(token for turn in example.texts for token in turn) for example in examples],
        )
    )
    found = text_scores(texts, [example.target for example in examples], words=words)
    values = {"chrf": found.values["chrf"], "bleu": found.values["bleu"]}
    values |= {f"distinct_{size}": distinct(written, size) for size in (1, 2)}
    values |= {f"hits_at_{k}": share for k, share in zip(_AT, hits(written, true), strict=True)}
    values |= {f"retrieved_at_{k}": share for k, share in zip(_AT, hits(read, true), strict=True)}
    return Scores("chrf", values)


def distinct(texts: Sequence[Words], size: int) -> float:
    """Return the share of different runs of `size` words.

    >>> distinct([["I", "see"], ["I", "know"]], 1)
    0.75
    """
    runs = Counter(tuple(text[at : at + size]) for text in texts for at in range(len(text) - size + 1))
    return len(runs) / max(1, runs.total())


def hits(queries: Sequence[Words], replies: Sequence[Words]) -> list[float]:
    """Return how often a query's own reply is among the nearest 1 and 5 of `CANDIDATES` replies."""
    rarity = _rarity(replies)
    weighted, asked = ([_weights(text, rarity) for text in some] for some in (replies, queries))
    draw, ranks = random.Random(_SEED), []
    for place, query in enumerate(asked):
        others = [at for at in draw.sample(range(len(replies)), min(CANDIDATES, len(replies))) if at != place]
        own = _cosine(query, weighted[place])
        ranks.append(sum(_cosine(query, weighted[at]) >= own for at in others[: CANDIDATES - 1]))
    return [sum(rank < k for rank in ranks) / max(1, len(ranks)) for k in _AT]


def _rarity(texts: Sequence[Words]) -> Weights:
    counts = Counter(word for text in texts for word in set(text))
    return {word: math.log((1 + len(texts)) / (1 + count)) + 1 for word, count in counts.items()}


def _weights(text: Words, rarity: Weights) -> Weights:
    """Return the TF-IDF weights of a text's known words, with length one."""
    raw = {word: count * rarity[word] for word, count in Counter(text).items() if word in rarity}
    length = math.sqrt(sum(weight * weight for weight in raw.values())) or 1.0
    return {word: weight / length for word, weight in raw.items()}


def _cosine(one: Weights, other: Weights) -> float:
    return sum(weight * other.get(word, 0.0) for word, weight in one.items())
