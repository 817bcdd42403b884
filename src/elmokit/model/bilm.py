"""The bidirectional language model: all its layers for a batch of sentences.

Sentences lie one after another in one long axis S (each with its `<S>` and `</S>`), beside their lengths, so
there is no padding anywhere. Letters: see `config.py`.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from elmokit.kernels import Packing
from elmokit.model.char_cnn import CharCNN, make_embedding
from elmokit.model.config import BiLMConfig, CharCNNConfig, LexiconConfig
from elmokit.model.lexicon_encoder import LexiconEncoder
from elmokit.model.lstm import BiLSTMLayer, LayerState

State = Sequence[LayerState]


class BiLM(nn.Module):
    """Token encoder and L layers of forward and backward LSTM (Peters et al. 2018, section 3.1).

        h_0 = [x; x],   h_l = [→h_l; ←h_l],   →h_l = →LSTM_l(→h_{l-1})  (+ →h_{l-1} for l ≥ 2 with skips)

    Each direction reads only its own lower layers, so →h_t knows nothing of later tokens, ←h_t nothing of
    earlier ones.
    """

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = _make_encoder(config)
        self.layers = nn.ModuleList(BiLSTMLayer(config) for _ in range(config.num_layers))

    @property
    def num_outputs(self) -> int:
        """L + 1, the layers that `forward` gives."""
        return self.config.num_layers + 1

    def start(self, batch: int) -> list[LayerState]:
        """The zero state of `batch` sentences."""
        return [layer.start(batch) for layer in self._lstm_layers()]

    def forward(
        self, x: Tensor, lengths: Tensor, state: State | None = None
    ) -> tuple[Tensor, list[LayerState]]:
        """All layers of every token.

        Args:
            x: (S, P) token vectors (`encoder`'s answers), sentence after sentence.
            lengths: (B,) tokens of each sentence; their sum is S.
            state: where each sentence starts; zero when not given.

        Returns:
            (L + 1, S, 2P), bottom layer first, and the state after each sentence.
        """
        packing = Packing.of(lengths)
        index, inverse = packing.index.to(x.device), packing.inverse.to(x.device)  # (2, S)
        order, rank = packing.order.to(x.device), torch.argsort(packing.order).to(x.device)  # (B,)
        starts = self.start(len(lengths)) if state is None else state
        packed = x[index]  # (2, S, P)
        outputs, ends = [torch.cat([x, x], dim=-1)], []
        for number, layer in enumerate(self._lstm_layers()):
            out, end = layer(packed, packing.step_sizes, starts[number].rows(order))
            packed = out + packed if self.config.skip_connections and number > 0 else out
            outputs.append(torch.cat([packed[0][inverse[0]], packed[1][inverse[1]]], dim=-1))  # (S, 2P)
            ends.append(end.rows(rank))
        return torch.stack(outputs), ends

    def _lstm_layers(self) -> list[BiLSTMLayer]:
        return [layer for layer in self.layers if isinstance(layer, BiLSTMLayer)]


def _make_encoder(config: BiLMConfig) -> CharCNN | LexiconEncoder | nn.Embedding:
    encoder, dim = config.encoder, config.projection_dim
    if isinstance(encoder, CharCNNConfig):
        return CharCNN(encoder, dim)
    if isinstance(encoder, LexiconConfig):
        return LexiconEncoder(encoder, dim)
    return make_embedding(encoder.num_words, dim)
