"""The token layer: each distinct token goes through the encoder once, and is remembered over calls."""

from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Any

import torch
from torch import Tensor

from elmokit.embed.engine import InferenceBiLM
from elmokit.model import BiLMConfig, CharCNNConfig, LexiconConfig
from elmokit.text import Lexicon, Vocabulary, character_matrix, used_characters

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
        self._ids = encoder_inputs(model.config, vocabulary, lexicon)
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
        """(S, P)."""
        with self._lock:
            return self._look_up(tokens)

    def _look_up(self, tokens: list[str]) -> Tensor:
        if self._table is None:  # memory is taken only as rows are written
            self._table = torch.empty(_CACHED_TYPES, self._dim, device=self._device)
        types = dict.fromkeys(tokens)
        missing = [token for token in types if token not in self._rows]
        if len(self._rows) + len(missing) > _CACHED_TYPES:  # full: begin again with what is in use now
            self._rows.clear()
            missing = list(types)
        if len(missing) > _CACHED_TYPES:
            place = {token: row for row, token in enumerate(missing)}
            return self._encode(missing)[[place[token] for token in tokens]]
        if missing:
            first = len(self._rows)
            self._table[first : first + len(missing)] = self._encode(missing)
            self._rows.update(zip(missing, range(first, first + len(missing)), strict=True))
        rows = torch.tensor([self._rows[token] for token in tokens], dtype=torch.long)
        return self._table[rows.to(self._device)]

    def _encode(self, types: list[str]) -> Tensor:
        """(U, P)."""
        return self._encode_ids(*(ids.to(self._device) for ids in self._ids(types)))


def encoder_inputs(
    config: BiLMConfig, vocabulary: Vocabulary | None, lexicon: Lexicon | None
) -> Callable[[list[str]], tuple[Tensor, ...]]:
    """What the model's encoder takes for a list of types."""
    if isinstance(config.encoder, CharCNNConfig):
        return partial(_character_inputs, config.encoder.max_characters)
    if isinstance(config.encoder, LexiconConfig):
        assert lexicon is not None  # a ModelBundle of such a model has one
        return partial(_lexicon_inputs, lexicon, config.encoder.characters.max_characters)
    assert vocabulary is not None  # a ModelBundle without characters has one
    return partial(_word_inputs, vocabulary)


def _word_inputs(vocabulary: Vocabulary, types: list[str]) -> tuple[Tensor, ...]:
    return (torch.tensor([vocabulary.id(token) for token in types]),)


def _character_inputs(max_characters: int, types: list[str]) -> tuple[Tensor, ...]:
    matrix = character_matrix(types, max_characters=max_characters)
    return torch.from_numpy(matrix), torch.from_numpy(used_characters(matrix))


def _lexicon_inputs(lexicon: Lexicon, max_characters: int, types: list[str]) -> tuple[Tensor, ...]:
    inputs = [*lexicon.spell(types, max_characters=max_characters)]
    if lexicon.words is not None:
        inputs.append(lexicon.word_ids(types, max_characters=max_characters))
    return tuple(map(torch.from_numpy, inputs))
