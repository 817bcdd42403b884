"""What the language model answers. Logarithms are natural ones, unless they are called bits."""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from elmokit.errors import DataError

# The code that spells a word out: one of 256 bytes or the end, all equally likely.
_BITS_PER_BYTE = math.log2(257)


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A word for a gap.

    Attributes:
        word: the word.
        probability: of the word given both sides; those of all words of the vocabulary sum to 1.
        forward: its probability given what stands to the left.
        backward: its probability given what stands to the right.
    """

    word: str
    probability: float
    forward: float
    backward: float

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class SentenceScore:
    """How likely a sentence is, word by word, read from the left and read from the right.

    Attributes:
        text: what was scored; of a sentence that was given by its tokens these with blanks between.
        tokens: its n words.
        known: for each word whether it is in the vocabulary. The numbers of one that is not are those of
            `<UNK>`, that is of any such word.
        forward: log p(word | all to its left) for each word.
        backward: log p(word | all to its right) for each word.
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
        """Log p(sentence) by the forward model."""
        return math.fsum((*self.forward, self.end))

    @property
    def backward_total(self) -> float:
        """Log p(sentence) by the backward model."""
        return math.fsum((*self.backward, self.begin))

    @property
    def total(self) -> float:
        """The mean of both totals."""
        return (self.forward_total + self.backward_total) / 2

    @property
    def perplexity(self) -> float:
        """Of the sentence's n + 1 targets, the mean of both directions."""
        return _exp(-self.total / (len(self.tokens) + 1))

    @property
    def surprises(self) -> list[float]:
        """For each word -log p, the mean of both directions: the larger, the less it was expected."""
        return [-(a + b) / 2 for a, b in zip(self.forward, self.backward, strict=True)]

    def most_surprising(self, count: int = 3) -> list[int]:
        """Positions of the words that were least expected, the least first."""
        surprises = self.surprises
        return sorted(range(len(surprises)), key=lambda at: -surprises[at])[:count]

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        derived = ("forward_total", "backward_total", "total", "perplexity")
        return asdict(self) | {name: getattr(self, name) for name in derived}


@dataclass(frozen=True, kw_only=True)
class Perplexity:
    """How well a model predicts a text: full softmax, every sentence from the zero state.

    Attributes:
        forward: exp of the mean loss of the forward model over all targets.
        backward: the same of the backward model.
        mean: exp of the mean of both mean losses.
        sentences: sentences with at least one word.
        words: their words.
        tokens: targets in each direction: the words and one end for each sentence.
        oov_rate: share of the words that are not in the vocabulary.
        bits_per_character: bits that the model needs for a character, by which models of *different*
            vocabularies can be compared: perplexity flatters a small vocabulary, since `<UNK>` is easy to
            predict. The bits are the mean loss of both directions, and for each word out of vocabulary, whose
            loss pays for `<UNK>` alone, log2(257) ≈ 8 bits for each byte of its spelling and its end (all
            bytes equally likely). The characters are those of the words, and one for the blank or line end
            after each word.
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
        """Sum up scores; sentences without words are passed over.

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
            strange = [token for token, known in zip(score.tokens, score.known, strict=True) if not known]
            unknown += len(strange)
            spelt += sum(len(token.encode("utf-8", "surrogatepass")) + 1 for token in strange)
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
        """As JSON can hold it."""
        return asdict(self)


def _exp(loss: float) -> float:
    """Exp, infinite where it has no float."""
    try:
        return math.exp(loss)
    except OverflowError:
        return math.inf
