"""The bidirectional language model: all its layers for a batch of sentences.

Sentences lie one after another in one long axis S (each with its boundary tokens), beside their lengths, so
there is no padding anywhere. Letters: see `config.py`.
"""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from elmokit.kernels import Packing
from elmokit.model.config import BiLMConfig
from elmokit.model.joined_lstm import JoinedLSTM
from elmokit.model.lstm import BiLSTMLayer, LayerState

State = Sequence[LayerState]


class BiLM(nn.Module):
    """Token encoder and L layers of forward and backward LSTM (Peters et al. 2018, section 3.1).

        h_0 = [x; x],   h_l = [→h_l; ←h_l],   →h_l = →LSTM_l(→h_{l-1})  (+ →h_{l-1} for l ≥ 2 with skips)

    Each direction reads only its own lower layers, so →h_t knows nothing of later tokens, ←h_t nothing of
    earlier ones. (With `joined_directions` all LSTM layers are one `JoinedLSTM`, which carries no state.)
    """

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = config.encoder.build(config.projection_dim)
        self.layers = nn.ModuleList(
            [JoinedLSTM(config)]
            if config.joined_directions
            else [BiLSTMLayer(config) for _ in range(config.num_layers)]
        )

    @property
    def lstm_layers(self) -> list[BiLSTMLayer]:
        """Return the LSTM layers; none with `joined_directions`."""
        return [layer for layer in self.layers if isinstance(layer, BiLSTMLayer)]

    @property
    def num_outputs(self) -> int:
        """Return L + 1, the number of layers that `forward` gives."""
        return self.config.num_outputs

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw initial weights as bilm-tf does."""
        self.encoder.reset_parameters(generator)
        for layer in cast(list[BiLSTMLayer | JoinedLSTM], self.layers):
            layer.reset_parameters(generator)

    def start(self, batch: int) -> list[LayerState]:
        """Return the zero state of `batch` sentences."""
        return [layer.start(batch) for layer in self.lstm_layers]

    def forward(
        self, x: Tensor, lengths: Tensor, state: State | None = None
    ) -> tuple[Tensor, list[LayerState]]:
        """Compute all layers of every token.

        Args:
            x: (S, P) token vectors from `encoder`, sentence after sentence.
            lengths: (B,) tokens of each sentence; their sum is S.
            state: Where each sentence starts; zero if not given.

        Returns:
            (L + 1, S, 2P), bottom layer first, and the state after each sentence.
        """
        packing = Packing.of(lengths)
        if self.config.joined_directions:
            return torch.stack([torch.cat([x, x], dim=-1), self.layers[0](x, packing)]), []
        index, inverse = packing.index.to(x.device), packing.inverse.to(x.device)  # (2, S)
        order, rank = packing.order.to(x.device), torch.argsort(packing.order).to(x.device)  # (B,)
        starts = self.start(len(lengths)) if state is None else state
        packed = x[index]  # (2, S, P)
        outputs, ends = [torch.cat([x, x], dim=-1)], []
        for number, layer in enumerate(self.lstm_layers):
            out, end = layer(packed, packing.step_sizes, starts[number].rows(order))
            packed = out + packed if self.config.skip_connections and number > 0 else out
            outputs.append(torch.cat([packed[0][inverse[0]], packed[1][inverse[1]]], dim=-1))  # (S, 2P)
            ends.append(end.rows(rank))
        return torch.stack(outputs), ends
