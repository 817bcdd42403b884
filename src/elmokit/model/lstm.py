"""A projected LSTM layer in both directions, over packed batches: the reference for the loops in `kernels`.

Shapes: B sentences, b of them running, S tokens of all sentences, N cell, P projection. A leading axis of 2
is the direction: 0 forward, 1 backward.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from elmokit.kernels import LayerWeights, add_to_forget_gate, step_blocks
from elmokit.model.config import BiLMConfig

# W_x x is one product for as many tokens as fit in this many numbers (256 MB in float32).
_GATE_NUMBERS = 64 * 1024 * 1024


@dataclass(frozen=True)
class LayerState:
    """The state of one layer: hidden (2, B, P), cell (2, B, N)."""

    hidden: Tensor
    cell: Tensor

    def rows(self, index: Tensor) -> "LayerState":
        """Return the state of the sentences `index`, in that order."""
        return LayerState(self.hidden[:, index], self.cell[:, index])

    def to(self, where: torch.device | Tensor) -> "LayerState":
        """Return the state on another device, or on that of another tensor and in its type."""
        return LayerState(self.hidden.to(where), self.cell.to(where))

    @staticmethod
    def cat(states: Sequence["LayerState"]) -> "LayerState":
        """Put the sentences of several states one after another."""
        return LayerState(
            torch.cat([state.hidden for state in states], dim=1),
            torch.cat([state.cell for state in states], dim=1),
        )


class BiLSTMLayer(nn.Module):
    """One layer in both directions, which share nothing but the loop.

        z = W_x x_t + W_h h_{t-1} + b,   z = [i, f, j, o]
        c_t = clip(σ(f + forget_bias) · c_{t-1} + σ(i) · tanh(j), ± cell_clip)
        h_t = clip(W_p (σ(o) · tanh(c_t)), ± projection_clip)

    The output is h_t; there are no peepholes (Sak et al. 2014; bilm-tf and AllenNLP agree).
    """

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        cell, dim = config.cell_dim, config.projection_dim
        self.config = config
        self.input_weight = nn.Parameter(torch.empty(2, 4 * cell, dim))
        self.state_weight = nn.Parameter(torch.empty(2, 4 * cell, dim))
        self.bias = nn.Parameter(torch.zeros(2, 4 * cell))
        self.projection = nn.Parameter(torch.empty(2, dim, cell)) if config.projection else None
        if self.bias.device.type != "meta":
            self.reset_parameters()

    def weights(self, direction: int) -> LayerWeights:
        """Return the weights of one direction."""
        projection = None if self.projection is None else self.projection[direction]
        return LayerWeights(
            self.input_weight[direction], self.state_weight[direction], self.bias[direction], projection
        )

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw initial weights as bilm-tf does: Glorot, for input and state as one matrix."""
        cell, dim = self.config.cell_dim, self.config.projection_dim
        bound = math.sqrt(6 / (2 * dim + 4 * cell))
        nn.init.uniform_(self.input_weight, -bound, bound, generator=generator)
        nn.init.uniform_(self.state_weight, -bound, bound, generator=generator)
        nn.init.zeros_(self.bias)
        if self.projection is not None:
            bound = math.sqrt(6 / (cell + dim))
            nn.init.uniform_(self.projection, -bound, bound, generator=generator)

    def start(self, batch: int) -> LayerState:
        """Return the zero state of `batch` sentences."""
        return LayerState(
            self.bias.new_zeros(2, batch, self.config.projection_dim),
            self.bias.new_zeros(2, batch, self.config.cell_dim),
        )

    def forward(self, x: Tensor, step_sizes: list[int], state: LayerState) -> tuple[Tensor, LayerState]:
        """Run both directions over a packed batch.

        Args:
            x: (2, S, P) packed inputs.
            step_sizes: Number of sentences running at each step, falling; their sum is S.
            state: Where the sentences start, longest first.

        Returns:
            (2, S, P) packed outputs, and the state after each sentence's own last token.
        """
        hidden, cell = state.hidden, state.cell
        outputs: list[Tensor] = []
        finished: list[LayerState] = []
        for gates in self._gate_inputs(x, step_sizes):  # (2, b, 4N), b sentences running
            running = gates.shape[1]
            if running < hidden.shape[1]:
                finished.append(LayerState(hidden[:, running:], cell[:, running:]))
                hidden, cell = hidden[:, :running], cell[:, :running]
            hidden, cell = self._step(gates, hidden, cell)
            outputs.append(hidden)
        finished.append(LayerState(hidden, cell))
        finished.reverse()  # the longest sentences stopped last
        return torch.cat(outputs, dim=1) if outputs else torch.empty_like(x), LayerState.cat(finished)

    def _gate_inputs(self, x: Tensor, step_sizes: list[int]) -> Iterator[Tensor]:
        """Compute W_x x + b of each step, by one product for as many steps as memory allows."""
        bias = add_to_forget_gate(self.bias, self.config.forget_bias).unsqueeze(1)  # (2, 1, 4N)
        most = max(1, _GATE_NUMBERS // (8 * self.config.cell_dim))
        for sizes, begin, end in step_blocks(step_sizes, most):
            gates = torch.baddbmm(bias, x[:, begin:end], self.input_weight.transpose(1, 2))  # (2, block, 4N)
            yield from torch.split(gates, sizes, dim=1)

    def _step(self, gates: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """Run one time step: (2, b, 4N), (2, b, P), (2, b, N) → the new hidden and cell."""
        config = self.config
        gates = torch.baddbmm(gates, hidden, self.state_weight.transpose(1, 2))  # (2, b, 4N)
        i, f, j, o = gates.chunk(4, dim=-1)  # (2, b, N) each
        cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(j)
        if config.cell_clip is not None:
            cell = cell.clamp(-config.cell_clip, config.cell_clip)
        hidden = torch.sigmoid(o) * torch.tanh(cell)  # (2, b, N)
        if self.projection is not None:
            hidden = hidden @ self.projection.transpose(1, 2)  # (2, b, P)
            if config.projection_clip is not None:
                hidden = hidden.clamp(-config.projection_clip, config.projection_clip)
        return hidden, cell
