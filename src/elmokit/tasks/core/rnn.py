"""A bidirectional LSTM over packed batches: the task's own, and those of heads."""

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
        skip: whether x joins the output, too: [h; x; e].
    """

    def __init__(
        self,
        input_dim: int,
        extra_dim: int,
        *,
        size: int,
        layers: int,
        dropout: float,
        skip: bool = False,
    ) -> None:
        super().__init__()
        self.skip = skip and size > 0
        self.dropout = Dropout(dropout)
        self.lstm = None
        if size:
            between = dropout if layers > 1 else 0.0
            self.lstm = nn.LSTM(input_dim, size, layers, bidirectional=True, dropout=between)
            for name, bias in self.lstm.named_parameters():
                if name.startswith("bias_ih"):  # start with an open forget gate
                    nn.init.constant_(bias[size : 2 * size], 1.0)
        self.output_dim = (2 * size or input_dim) + extra_dim + (input_dim if self.skip else 0)

    def forward(
        self, x: Tensor, extra: Tensor | None, lengths: Tensor, *, groups: Tensor | None = None
    ) -> Hidden:
        """(S, input_dim), (S, extra_dim), (B,) → (S, output_dim).

        Args:
            x: the vectors of all texts.
            extra: what joins the output.
            lengths: of the texts.
            groups: how many tokens share a mask of dropout, group after group; if None each has its own.
        """
        packing = Packing.of(lengths)
        if self.lstm is not None:
            dropped = self._drop(x, groups)
            h = bidirectional_lstm(self.lstm, dropped, packing, generator=self.dropout.generator)
            x = torch.cat([h, x], dim=1) if self.skip else h
        if extra is not None:
            x = torch.cat([x, extra.to(x.device)], dim=1)
        return Hidden(self._drop(x, groups), lengths, packing)

    def _drop(self, x: Tensor, groups: Tensor | None) -> Tensor:
        if groups is None:
            dropped: Tensor = self.dropout(x)
            return dropped
        masks: Tensor = self.dropout(x.new_ones(len(groups), x.shape[1]))  # (groups, D)
        return x * masks.repeat_interleave(groups.to(x.device), dim=0, output_size=len(x))
