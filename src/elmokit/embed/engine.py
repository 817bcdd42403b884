"""The biLM made ready for embedding: the same numbers as `BiLM`, without gradients and without needless work.

The two directions know nothing of each other, so each direction of each batch is a piece of work for one
thread (see `kernels.threads`). Where that would be too little work, one loop runs both directions, which
halves the number of small operations.

Shapes: S tokens of a batch, B sentences, U distinct tokens, L layers, N cell, P projection.
"""

import math
from collections.abc import Sequence
from copy import deepcopy
from typing import NamedTuple

import torch
from torch import Tensor

from elmokit.kernels import (
    ROWS_TOGETHER,
    Packing,
    Precision,
    bidirectional_lstm,
    make_inference_lstm,
    num_threads,
    side_by_side,
)
from elmokit.model import BiLM, BiLMConfig, JoinedLSTM, LayerState, State, read_at_once

_TYPES_AT_ONCE = 256


class Batch(NamedTuple):
    """What `BiLM.forward` takes: token vectors (S, P), lengths (B,), and the state or None for zero."""

    x: Tensor
    lengths: Tensor
    state: State | None = None


class InferenceBiLM:
    """A frozen copy of a BiLM, made for embedding.

    Args:
        model: What to copy; later changes of its weights are not seen.
        precision: Of the products.
    """

    def __init__(self, model: BiLM, precision: Precision) -> None:
        config = self.config = model.config
        self._precision = precision
        self._encoder = model.encoder.frozen(precision)
        self._work_per_token = 2 * config.num_layers * 9 * config.cell_dim * config.projection_dim
        weights = [[layer.weights(direction) for direction in range(2)] for layer in model.lstm_layers]
        self._lstm = make_inference_lstm(weights, config, precision)
        self._at_once = None if config.layers == "lstm" else deepcopy(model.layers).eval()
        self._joined = next((layer for layer in model.layers if isinstance(layer, JoinedLSTM)), None)

    def encode(self, *inputs: Tensor) -> Tensor:
        """Return the vectors (U, P) of types, given what the model's encoder takes."""
        size = _size_of_parts(len(inputs[0]), num_threads())
        parts = list(zip(*(torch.split(tensor, size) for tensor in inputs), strict=True))
        return torch.cat(side_by_side(lambda part: self._encoder(*part), parts, inputs[0].device))

    def __call__(
        self, batches: Sequence[Batch], *, ends: bool = True
    ) -> list[tuple[Tensor, list[LayerState]]]:
        """Return for each batch what `BiLM.forward` does: (L + 1, S, 2P), and the states at the end.

        Args:
            batches: What to run.
            ends: Whether the states are wanted; otherwise there are none.
        """
        if not batches:
            return []
        tokens, device = sum(len(batch.x) for batch in batches), batches[0].x.device
        if self._joined is not None:
            return [(layers, []) for layers in side_by_side(self._run_joined, batches, device)]
        if self._at_once is not None:
            return [(layers, []) for layers in side_by_side(self._read_at_once, batches, device)]
        packed = [_PackedBatch(batch, self.config) for batch in batches]
        if tokens * self._work_per_token < self._lstm.worth_a_thread or device.type != "cpu":
            for one in packed:
                self._run((one, slice(0, 2)))
        else:
            side_by_side(self._run, [(one, slice(d, d + 1)) for one in packed for d in range(2)], device)
        return [(one.layers, one.ends() if ends else []) for one in packed]

    @torch.inference_mode()
    def _run(self, piece: "tuple[_PackedBatch, slice]") -> None:
        """Run all layers of one batch, in one direction or in both."""
        batch, directions = piece
        start = batch.start_of(directions)
        batch.put(directions, *self._lstm(batch.x, directions, batch.packing, start, batch.outputs))

    def _read_at_once(self, batch: Batch) -> Tensor:
        """Return all layers (L + 1, S, 2P) of a model that carries no state; in float32."""
        assert self._at_once is not None
        return read_at_once(self._at_once, batch.x, batch.lengths)

    def _run_joined(self, batch: Batch) -> Tensor:
        """Return both layers (2, S, 2P) of a model whose directions are joined."""
        assert self._joined is not None
        packing = Packing.of(batch.lengths)
        hidden = bidirectional_lstm(self._joined.lstm, batch.x, packing, precision=self._precision)  # (S, 2N)
        return torch.stack([torch.cat([batch.x, batch.x], dim=-1), self._joined.project(hidden)])


class _PackedBatch:
    """A batch, how it is packed, and the memory for its results."""

    def __init__(self, batch: Batch, config: BiLMConfig) -> None:
        self.x, lengths, state = batch
        device, num_layers, dim = self.x.device, config.num_layers, config.projection_dim
        self.packing = Packing.of(lengths)
        self.layers = self.x.new_empty(num_layers + 1, len(self.x), 2 * dim)  # (L + 1, S, 2P)
        halves = self.layers.view(num_layers + 1, len(self.x), 2, dim)
        halves[0] = self.x[:, None]
        self.outputs = halves[1:]  # (L, S, 2, P)
        self._hidden = self.x.new_empty(num_layers, 2, len(lengths), dim)  # (L, 2, B, P)
        self._cell = self.x.new_empty(num_layers, 2, len(lengths), config.cell_dim)  # (L, 2, B, N)
        self._start: tuple[Tensor, Tensor] | None = None  # (L, 2, B, P), (L, 2, B, N), longest sentence first
        if state is not None:
            rows = [layer.rows(self.packing.order.to(device)) for layer in state]
            self._start = (torch.stack([row.hidden for row in rows]), torch.stack([row.cell for row in rows]))

    def start_of(self, directions: slice) -> tuple[Tensor, Tensor] | None:
        """Return the state that these directions start from; None for zero."""
        return None if self._start is None else (self._start[0][:, directions], self._start[1][:, directions])

    def put(self, directions: slice, hidden: Tensor, cell: Tensor) -> None:
        """Keep the states at the end of these directions."""
        self._hidden[:, directions] = hidden
        self._cell[:, directions] = cell

    def ends(self) -> list[LayerState]:
        """Return the state of each layer after each sentence, in the order of the batch."""
        rank = torch.argsort(self.packing.order).to(self.x.device)  # (B,)
        return [
            LayerState(hidden, cell).rows(rank)
            for hidden, cell in zip(self._hidden.unbind(), self._cell.unbind(), strict=True)
        ]


def _size_of_parts(number: int, threads: int) -> int:
    """Return how many types to encode together so that every thread has the same amount of work."""
    if number <= _TYPES_AT_ONCE:
        return max(number, 1)
    parts = threads * math.ceil(number / (threads * _TYPES_AT_ONCE))
    return math.ceil(number / (parts * ROWS_TOGETHER)) * ROWS_TOGETHER
