"""The task's own bidirectional LSTM over packed batches."""

import torch
from torch import Tensor, nn

from elmokit.kernels import Dropout, bidirectional_lstm
from elmokit.model import Packing
from elmokit.tasks.core.protocol import Hidden


class TaskRNN(nn.Module):
    """Dropout, LSTM, [h; e], dropout; with size 0 only [x; e] and dropout.

    Args:
        input_dim: size of x.
        extra_dim: size of e, which joins the output.
        size: of each direction; 0 for no LSTM.
        layers: number of LSTM layers.
        dropout: rate before, between and after the layers.
    """

    def __init__(self, input_dim: int, extra_dim: int, *, size: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.lstm = None
        if size:
            between = dropout if layers > 1 else 0.0
            self.lstm = nn.LSTM(input_dim, size, layers, bidirectional=True, dropout=between)
            for name, bias in self.lstm.named_parameters():
                if name.startswith("bias_ih"):  # start with an open forget gate
                    nn.init.constant_(bias[size : 2 * size], 1.0)
        self.output_dim = (2 * size or input_dim) + extra_dim

    def forward(self, x: Tensor, extra: Tensor, lengths: Tensor) -> Hidden:
        """(S, input_dim), (S, extra_dim), (B,) → (S, output_dim)."""
        packing = Packing.of(lengths)
        if self.lstm is not None:
            x = bidirectional_lstm(self.lstm, self.dropout(x), packing, generator=self.dropout.generator)
        return Hidden(self.dropout(torch.cat([x, extra.to(x.device)], dim=1)), lengths, packing)
