"""The vectors that an index stores: one of each passage, and one of each of its words."""

import json
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from elmokit.encoders import ElmoEncoder
from elmokit.search.quantised import Floats, to_unit

if TYPE_CHECKING:
    from elmokit.embed import Embedder, Sentence

_WORD_AXES = 128  # of each layer
_WORD_LAYER = 0.6  # how much a layer counts in the vector of a word, beside the one below


class PassageVectors:
    """Makes vectors of embedded sentences.

    With the statistics that `fit_pooling` fits, a passage has the whitened vector of all its words, and a
    word that of itself on the first axes of each layer; without, they have means of the layers' mix.
    """

    def __init__(self, embedder: "Embedder") -> None:
        self.embedder = embedder
        self._fitted = embedder.pooling

    @cached_property
    def _word_axes(self) -> Floats:
        assert self._fitted is not None
        return np.ascontiguousarray(self._fitted.axes[:, :, :_WORD_AXES])  # (L+1, D, K)

    @property
    def word_dim(self) -> int:
        """Return the size of the vector of a word."""
        if self._fitted is None:
            return self.embedder.dim
        return int(len(self._fitted.means) * min(_WORD_AXES, self._fitted.axes.shape[2]))

    @property
    def passage_dim(self) -> int:
        """Return the size of the vector of a passage."""
        return self.embedder.dim if self._fitted is None else self._fitted.dim

    def fingerprint(self) -> str:
        """Return what tells this model and its statistics from others."""
        import hashlib

        digest = hashlib.sha256(ElmoEncoder(self.embedder, "").fingerprint().encode())
        digest.update(json.dumps(self.embedder.tokenizer_spec.to_dict()).encode())
        digest.update(repr((_WORD_AXES, _WORD_LAYER)).encode())
        if self._fitted is not None:
            digest.update(repr(self._fitted.words).encode())
            for array in self._fitted.arrays().values():
                digest.update(np.round(array, 3).astype(np.float16).tobytes())
        return digest.hexdigest()[:32]

    def sums(self, sentence: "Sentence") -> tuple[Floats, float]:
        """Return the weighted sum of a sentence's tokens, and the sum of their weights."""
        if self._fitted is None:
            total: Floats = sentence.vectors.sum(axis=0)
            return total, float(len(sentence))
        weights = self._fitted.token_weights(sentence.tokens)
        weighted: Floats = np.matmul(weights, sentence.layers)  # (L+1, D)
        return weighted, float(weights.sum())

    def passage(self, sums: Sequence[tuple[Floats, float]]) -> Floats:
        """Return the vector of a passage, given the sums of its sentences; zeros without tokens."""
        weight = sum(one for _, one in sums)
        if not weight:
            return np.zeros(self.passage_dim, np.float32)
        mean: Floats = np.sum([total for total, _ in sums], axis=0) / weight
        return mean.astype(np.float32) if self._fitted is None else self._fitted.whitened(mean)

    def words(self, sentences: Sequence["Sentence"]) -> Floats:
        """Return the vectors of the tokens of sentences one after another, (S, word_dim), of length 1."""
        fitted = self._fitted
        if fitted is None:
            return to_unit(np.concatenate([one.vectors for one in sentences]))
        layers = np.concatenate([one.layers for one in sentences], axis=1)  # (L+1, S, D)
        layers -= fitted.means[:, None]
        # Torch has its threads already; those of NumPy would compete with them.
        found = torch.bmm(torch.from_numpy(layers), torch.from_numpy(self._word_axes)).numpy()  # (L+1, S, K)
        weights = _WORD_LAYER ** np.arange(len(found), dtype=np.float32)
        return to_unit(np.concatenate(to_unit(found) * weights[:, None, None], axis=-1))

    def word_weights(self, sentence: "Sentence") -> Floats:
        """Return how much each token counts, (T,)."""
        if self._fitted is None:
            return np.ones(len(sentence), np.float32)
        return self._fitted.token_weights(sentence.tokens)

    def settings(self) -> dict[str, Any]:
        """Return what an index records."""
        pooling = "mean" if self._fitted is None else "whitened"
        return {
            "pooling": pooling,
            "fingerprint": self.fingerprint(),
            "word_dim": self.word_dim,
            "dim": self.passage_dim,
        }
