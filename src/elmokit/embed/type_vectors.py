"""The token layer: each distinct token goes through the encoder once and is remembered over calls."""

from threading import Lock
from typing import Any

import numpy as np
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
            rows = list(map(self._rows.get, tokens))
            if None in rows:
                types = list(dict.fromkeys(tokens))
                if len(types) > _CACHED_TYPES:
                    return encode_distinct(tokens, self._encode)
                self._add(types)
                rows = list(map(self._rows.get, tokens))
            if self._table is None:  # there are no tokens
                return torch.empty(0, self._dim, device=self._device)
            index = torch.from_numpy(np.array(rows, np.int64))  # (S,)
            return self._table.index_select(0, index.to(self._device))

    def _add(self, types: list[str]) -> None:
        """Put the types that are missing into the table; if there is no room, empty it first."""
        if self._table is None:  # memory is taken only as rows are written
            self._table = torch.empty(_CACHED_TYPES, self._dim, device=self._device)
        missing = [token for token in types if token not in self._rows]
        if len(self._rows) + len(missing) > _CACHED_TYPES:
            self._rows.clear()
            missing = types
        first = len(self._rows)
        self._table[first : first + len(missing)] = self._encode(missing)
        self._rows.update(zip(missing, range(first, first + len(missing)), strict=True))

    def _encode(self, types: list[str]) -> Tensor:
        """Run the encoder: (U, P)."""
        return self._encode_ids(*(ids.to(self._device) for ids in self._inputs(types)))
