"""Static word vectors as an encoder: one vector for each spelling, whatever the sentence."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from elmokit.encoders.base import Sentences, fingerprint_of
from elmokit.encoders.vector_file import WordVectors, read_word_vectors, write_word_vectors
from elmokit.text import TokenizerSpec

_SAVED = "vectors.npy"


class StaticEncoder:
    """GloVe, word2vec or fastText vectors; see `Encoder`.

    A token without a vector gets that of its lower-case form, or else the zero vector.
    """

    contextual = False
    pretrained = True
    adaptable = False
    num_layers = 1
    tokenizer: TokenizerSpec | None = None

    def __init__(self, vectors: WordVectors, spec: str) -> None:
        self.spec = spec
        self.dim = vectors.table.shape[1]
        self._rows = vectors.rows
        nothing = np.zeros((1, self.dim), np.float32)
        self._table = torch.from_numpy(np.concatenate([vectors.table, nothing]))  # (V + 1, D)

    @classmethod
    def open(cls, path: str) -> "StaticEncoder":
        """Read a file of vectors."""
        return cls(read_word_vectors(path), f"glove:{Path(path).resolve()}")

    def encode(self, sentences: Sentences) -> list[Tensor]:
        """Return (1, T, D) for each sentence."""
        return [self._table[[self._row(token) for token in sentence]][None] for sentence in sentences]

    def fingerprint(self) -> str:
        """Return the fingerprint of the words and their vectors."""
        words = "\n".join(self._rows).encode("utf-8", "surrogatepass")
        return fingerprint_of([words, self._table[:-1].numpy().tobytes()])

    def save(self, folder: Path) -> str:
        """Write the vectors, whatever format they were read from."""
        folder.mkdir(parents=True, exist_ok=True)
        write_word_vectors(WordVectors(self._rows, self._table[:-1].numpy()), folder / _SAVED)
        return f"glove:{folder / _SAVED}"

    def _row(self, token: str) -> int:
        row = self._rows.get(token)
        return self._rows.get(token.lower(), len(self._rows)) if row is None else row
