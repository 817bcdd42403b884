"""The token layer: each distinct token goes through the encoder once and is remembered over calls."""

from threading import Lock
from typing import Any

import torch
from torch import Tensor

from elmokit.embed.engine import InferenceBiLM
from elmokit.model import encode_distinct
from elmokit.text import Lexicon, Vocabulary

_CACHED_TYPES = 65_536


class TypeVectors:
    """The vector of each token, computed once for each distinct one and kept in a table of bounded size."""

    def __init__(
        self,
        model: InferenceBiLM,
        vocabulary: Vocabulary | None,
        device: torch.device,
        lexicon: Lexicon | None = None,
    ) -> None:
        self._encode_ids = model.encode
        self._inputs = model.config.encoder.inputs(vocabulary, lexicon)
        self._dim = model.config.projection_dim
        self._device = device
        self._rows: dict[str, int] = {}
        self._table: Tensor | None = None
        self._lock = Lock()  # threads that add rows at once would overwrite each other's

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=Lock())

    def __call__(self, tokens: list[str]) -> Tensor:
        """Return the vectors (S, P) of tokens."""
        with self._lock:
            return encode_distinct(tokens, self._look_up)

    def _look_up(self, types: list[str]) -> Tensor:
        """Return the vectors (U, P) of distinct tokens, computing those that are not in the table."""
        if self._table is None:  # memory is taken only as rows are written
            self._table = torch.empty(_CACHED_TYPES, self._dim, device=self._device)
        missing = [token for token in types if token not in self._rows]
        if len(self._rows) + len(missing) > _CACHED_TYPES:  # full: start again with what is in use now
            self._rows.clear()
            missing = types
        if len(missing) > _CACHED_TYPES:
            return self._encode(missing)
        if missing:
            first = len(self._rows)
            self._table[first : first + len(missing)] = self._encode(missing)
            self._rows.update(zip(missing, range(first, first + len(missing)), strict=True))
        rows = torch.tensor([self._rows[token] for token in types], dtype=torch.long)  # (U,)
        return self._table[rows.to(self._device)]

    def _encode(self, types: list[str]) -> Tensor:
        """Run the encoder: (U, P)."""
        return self._encode_ids(*(ids.to(self._device) for ids in self._inputs(types)))
