"""The bidirectional language model: all its layers for a batch of sentences.

Sentences lie one after another in one long axis S (each with its boundary tokens), beside their lengths, so
there is no padding anywhere. Letters: see `config.py`.
"""

from collections.abc import Iterable, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from elmokit.kernels import Packing
from elmokit.model.causal_transformer import CausalTransformerLayer
from elmokit.model.config import BiLMConfig
from elmokit.model.gated_cnn import GatedCNNLayer
from elmokit.model.joined_lstm import JoinedLSTM
from elmokit.model.lstm import BiLSTMLayer, LayerState
from elmokit.model.reading_order import reversed_within

State = Sequence[LayerState]
_KINDS: dict[str, type[BiLSTMLayer | GatedCNNLayer | CausalTransformerLayer]] = {
    "lstm": BiLSTMLayer,
    "gated-cnn": GatedCNNLayer,
    "transformer": CausalTransformerLayer,
}


class BiLM(nn.Module):
    """Token encoder and L layers of forward and backward LSTM (Peters et al. 2018, section 3.1).

        h_0 = [x; x],   h_l = [→h_l; ←h_l],   →h_l = →LSTM_l(→h_{l-1})  (+ →h_{l-1} for l ≥ 2 with skips)

    Each direction reads only its own lower layers, so →h_t knows nothing of later tokens, ←h_t nothing of
    earlier ones. (With `joined_directions` all LSTM layers are one `JoinedLSTM`, which carries no state.)
    With `layers` other than "lstm", each direction reads its tokens at once and carries no state either.
    """

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = config.encoder.build(config.projection_dim)
        kind = _KINDS[config.layers]
        self.layers = nn.ModuleList(
            [JoinedLSTM(config)]
            if config.joined_directions
            else [kind(config) for _ in range(config.num_layers)]
        )

    @property
    def lstm_layers(self) -> list[BiLSTMLayer]:
        """Return the LSTM layers; none with `joined_directions`, or with layers of another kind."""
        return [layer for layer in self.layers if isinstance(layer, BiLSTMLayer)]

    @property
    def num_outputs(self) -> int:
        """Return L + 1, the number of layers that `forward` gives."""
        return self.config.num_outputs

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw initial weights as bilm-tf does."""
        self.encoder.reset_parameters(generator)
        for layer in cast(list[BiLSTMLayer], self.layers):  # all kinds have it
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
        if self.config.layers != "lstm":
            return read_at_once(self.layers, x, lengths), []
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


def read_at_once(layers: Iterable[nn.Module], x: Tensor, lengths: Tensor) -> Tensor:
    """Run layers that read all tokens of a sentence at once, (S, P) → (L + 1, S, 2P)."""
    back = reversed_within(lengths).to(x.device)  # (S,)
    hidden, outputs = torch.stack([x, x[back]]), [torch.cat([x, x], dim=-1)]  # (2, S, P), each as it reads
    for layer in layers:
        hidden = layer(hidden, lengths)
        outputs.append(torch.cat([hidden[0], hidden[1][back]], dim=-1))  # (S, 2P)
    return torch.stack(outputs)
