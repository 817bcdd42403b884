"""The "lstm" encoder of ELMoForManyLangs: a bidirectional LSTM whose layers read both directions."""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from elmokit.kernels import Packing
from elmokit.model.config import BiLMConfig


class JoinedLSTM(nn.Module):
    """Torch's bidirectional LSTM, its top layer projected by one matrix for both directions.

        [→h; ←h] = BiLSTM(x),   y = [W_p →h + b_p; W_p ←h + b_p]

    From the second layer on each direction reads both directions of the layer below. So this is no language
    model of two independent directions, and only y is an output.
    """

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        self.lstm = nn.LSTM(config.projection_dim, config.cell_dim, config.num_layers, bidirectional=True)
        self.projection = nn.Linear(config.cell_dim, config.projection_dim)

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw initial weights as torch does."""
        bound = self.lstm.hidden_size**-0.5
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound, generator=generator)

    def forward(self, x: Tensor, packing: Packing) -> Tensor:
        """Run all layers: (S, P) → (S, 2P), tokens in the order of the text."""
        if not len(x):
            return torch.cat([x, x], dim=-1)
        index, inverse = packing.index[0].to(x.device), packing.inverse[0].to(x.device)  # (S,)
        packed: PackedSequence = self.lstm(PackedSequence(x[index], torch.tensor(packing.step_sizes)))[0]
        return self.project(packed.data[inverse])

    def project(self, hidden: Tensor) -> Tensor:
        """Project both directions, (S, 2N) → (S, 2P)."""
        return torch.cat([self.projection(half) for half in hidden.chunk(2, dim=-1)], dim=-1)
