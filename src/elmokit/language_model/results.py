"""The language model's results. Logarithms are natural unless they are called bits."""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from elmokit.errors import DataError

# The cost of spelling a word: each symbol is one of 256 bytes or the end, all equally likely.
_BITS_PER_BYTE = math.log2(257)


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A word for a gap, with its probability given both sides, the left side and the right side."""

    word: str
    probability: float
    forward: float
    backward: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class SentenceScore:
    """The log-probability of each word of a sentence, read from the left and from the right.

    Attributes:
        text: what was scored; tokens that were given as a list are joined by spaces.
        tokens: its n words.
        known: for each word, whether it is in the vocabulary. One that is not is scored as `<UNK>`.
        forward, backward: log p(word | words to its left) and log p(word | words to its right) for each word.
        end: log p(the sentence ends after its last word).
        begin: log p(the sentence began before its first word).
    """

    text: str
    tokens: tuple[str, ...]
    known: tuple[bool, ...]
    forward: tuple[float, ...]
    backward: tuple[float, ...]
    end: float
    begin: float

    @property
    def forward_total(self) -> float:
        """Return log p(sentence) of the forward model."""
        return math.fsum((*self.forward, self.end))

    @property
    def backward_total(self) -> float:
        """Return log p(sentence) of the backward model."""
        return math.fsum((*self.backward, self.begin))

    @property
    def total(self) -> float:
        """Return the mean of both totals."""
        return (self.forward_total + self.backward_total) / 2

    @property
    def perplexity(self) -> float:
        """Return exp of the mean loss of the n + 1 targets, averaged over both directions."""
        return _exp(-self.total / (len(self.tokens) + 1))

    @property
    def surprises(self) -> list[float]:
        """Return -log p of each word, averaged over both directions: high for unexpected words."""
        return [-(a + b) / 2 for a, b in zip(self.forward, self.backward, strict=True)]

    def most_surprising(self, count: int = 3) -> list[int]:
        """Return the positions of the least expected words, the least expected first."""
        surprises = self.surprises
        return sorted(range(len(surprises)), key=lambda at: -surprises[at])[:count]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        derived = ("forward_total", "backward_total", "total", "perplexity")
        return asdict(self) | {name: getattr(self, name) for name in derived}


@dataclass(frozen=True, kw_only=True)
class Perplexity:
    """How well a model predicts a text, with the full softmax and every sentence from the zero state.

    Attributes:
        forward: exp of the mean loss of the forward model over all targets.
        backward: the same for the backward model.
        mean: exp of the mean of both mean losses.
        sentences, words: number of sentences with at least one word, and of their words.
        tokens: number of targets in each direction: the words and one end per sentence.
        oov_rate: share of the words that are not in the vocabulary.
        bits_per_character: compares models with *different* vocabularies, where perplexity favours a small
            vocabulary because `<UNK>` is easy to predict. The bits are the mean loss of both directions plus,
            for each word out of vocabulary, log2(257) ≈ 8 bits for each byte of its spelling and for its end
            (its loss covers only `<UNK>`). The characters are those of the words plus one after each word
            for the space or line end.
    """

    forward: float
    backward: float
    mean: float
    sentences: int
    words: int
    tokens: int
    oov_rate: float
    bits_per_character: float

    @classmethod
    def of(cls, scores: Iterable[SentenceScore]) -> "Perplexity":
        """Summarise scores; sentences without words are skipped.

        Raises:
            DataError: there is no sentence with a word.
        """
        sentences = words = unknown = characters = spelt = 0
        forward = backward = 0.0
        for score in scores:
            if not score.tokens:
                continue
            sentences += 1
            words += len(score.tokens)
            characters += sum(map(len, score.tokens)) + len(score.tokens)
            forward -= score.forward_total
            backward -= score.backward_total
            oov = [token for token, known in zip(score.tokens, score.known, strict=True) if not known]
            unknown += len(oov)
            spelt += sum(len(token.encode("utf-8", "surrogatepass")) + 1 for token in oov)
        if not sentences:
            raise DataError("the text has no words, expected at least one sentence; check the file")
        tokens = words + sentences
        bits = (forward + backward) / 2 / math.log(2) + spelt * _BITS_PER_BYTE
        return cls(
            forward=_exp(forward / tokens),
            backward=_exp(backward / tokens),
            mean=_exp((forward + backward) / 2 / tokens),
            sentences=sentences,
            words=words,
            tokens=tokens,
            oov_rate=unknown / words,
            bits_per_character=bits / characters,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)


def _exp(loss: float) -> float:
    """Return exp(loss), or infinity on overflow."""
    try:
        return math.exp(loss)
    except OverflowError:
        return math.inf
