"""Spans of a document as tensors, and what can be told about them without vectors.

Words are compared in lower case. Nothing depends on the language.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from elmokit.tasks.coreference.data import Mention, sentence_starts

_LEAST = (1, 2, 3, 4, 5, 8, 16, 32, 64, 128, 256)  # the smallest number of each bucket after that of 0
_BUCKETS = len(_LEAST) + 1
_OFTEN = 8  # occurrences in a document that are told apart

# Sizes of the features. Of a span: its width, its place in the sentence, how often its last word and the
# whole of it occur. Of a pair: the distance in words, in sentences, in kept spans; which words are the same.
SPAN_FEATURES = (_BUCKETS, _BUCKETS, _OFTEN, _OFTEN)
PAIR_FEATURES = (_BUCKETS, _BUCKETS, _BUCKETS, 64)


@dataclass(frozen=True)
class DocumentSpans:
    """Some spans of a document, in the order of the text.

    Attributes:
        starts, ends: (N,) the tokens [start, end).
        words: (T,) a number for each different word of the document.
        counts: (T,) how often the word of a token occurs.
        sentences: (T,) the sentence of each token.
        first: (T,) where that sentence starts.
    """

    starts: Tensor
    ends: Tensor
    words: Tensor
    counts: Tensor
    sentences: Tensor
    first: Tensor

    @classmethod
    def of(
        cls, mentions: Sequence[Mention], texts: Sequence[Sequence[str]], device: torch.device
    ) -> "DocumentSpans":
        """Make them from pairs of positions."""
        lower = [word.lower() for text in texts for word in text]
        numbers: dict[str, int] = {}
        words = [numbers.setdefault(word, len(numbers)) for word in lower]
        often = Counter(words)
        begins = sentence_starts(texts)[:-1]
        lengths = [len(text) for text in texts]
        places = np.array(mentions, dtype=np.int64).reshape(-1, 2)
        tensors = (
            places[:, 0],
            places[:, 1],
            np.array(words, dtype=np.int64),
            np.array([often[word] for word in words], dtype=np.int64),
            np.repeat(np.arange(len(texts)), lengths),
            np.repeat(np.array(begins, dtype=np.int64), lengths),
        )
        return cls(*(torch.from_numpy(np.ascontiguousarray(one)).to(device) for one in tensors))

    def at(self, rows: Tensor) -> "DocumentSpans":
        """Return some of the spans."""
        return replace(self, starts=self.starts[rows], ends=self.ends[rows])

    def tuples(self) -> list[Mention]:
        """Return the spans as pairs of positions."""
        return list(zip(self.starts.tolist(), self.ends.tolist(), strict=True))

    def tokens(self) -> tuple[Tensor, Tensor]:
        """Return the positions of the tokens of each span, (N, W), and which of these exist."""
        width = int((self.ends - self.starts).max()) if len(self.starts) else 0
        places = self.starts[:, None] + torch.arange(width, device=self.starts.device)  # (N, W)
        mask = places < self.ends[:, None]
        return places.clamp(max=max(0, len(self.words) - 1)), mask

    def features(self) -> Iterator[Tensor]:
        """Yield the features of spans, (N,) each; see `SPAN_FEATURES`."""
        yield bucket(self.ends - self.starts)
        yield bucket(self.starts - self.first[self.starts])
        yield self.counts[self.ends - 1].clamp(max=_OFTEN) - 1
        rare = torch.minimum(self.counts[self.starts], self.counts[self.ends - 1])
        yield rare.clamp(max=_OFTEN) - 1

    def pair_features(self, later: Tensor, earlier: Tensor) -> Iterator[Tensor]:
        """Yield the features of spans (R,) and their antecedents (R, A), (R, A) each; see `PAIR_FEATURES`."""
        start, other = self.starts[later][:, None], self.starts[earlier]
        yield bucket((start - other).clamp(min=0))
        yield bucket((self.sentences[start] - self.sentences[other]).clamp(min=0))
        yield bucket((later[:, None] - earlier).clamp(min=0))
        yield self._same_words(later, earlier)

    def _same_words(self, later: Tensor, earlier: Tensor) -> Tensor:
        """Return a number of six bits for each pair."""
        places, mask = self.tokens()
        inside = self.words[places].masked_fill(~mask, -1)  # (N, W)
        one, other = self.ends[later][:, None], self.ends[earlier]
        start, other_start = self.starts[later][:, None], self.starts[earlier]
        last, other_last = self.words[one - 1], self.words[other - 1]  # (R, 1), (R, A)
        same_length = one - start == other - other_start
        whole = self._text_numbers(inside)
        bits = (
            same_length & (whole[later][:, None] == whole[earlier]),
            last == other_last,
            self.words[start] == self.words[other_start],
            (inside[later][:, None] == other_last[:, :, None]).any(dim=2),  # its last word is in this one
            (inside[earlier] == last[:, :, None]).any(dim=2),
            other > start,  # one is inside the other
        )
        numbers = torch.zeros_like(other)  # (R, A)
        for place, bit in enumerate(bits):
            numbers += bit.long() << place
        return numbers

    @staticmethod
    def _text_numbers(inside: Tensor) -> Tensor:
        """Return a number for each different sequence of words, (N,)."""
        if not inside.numel():
            return inside.new_zeros(len(inside))
        numbers: Tensor = torch.unique(inside, dim=0, return_inverse=True)[1]
        return numbers


def bucket(values: Tensor) -> Tensor:
    """Return the bucket of each number (0 or more): the first five for themselves, then by powers of two.

    Example:
        >>> bucket(torch.tensor([0, 4, 5, 7, 8, 1000])).tolist()
        [0, 4, 5, 5, 6, 11]
    """
    return torch.bucketize(values, torch.tensor(_LEAST, device=values.device), right=True)
