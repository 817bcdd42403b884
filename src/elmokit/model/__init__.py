"""The network: token encoder, projected LSTMs of both directions, mixes of the layers. Knows torch alone."""

from elmokit.kernels.packing import Packing
from elmokit.model.bilm import BiLM
from elmokit.model.char_cnn import CharCNN
from elmokit.model.config import BiLMConfig, CharCNNConfig, LexiconConfig, WordConfig
from elmokit.model.lstm import BiLSTMLayer, LayerState
from elmokit.model.mix import ScalarMix

__all__ = [
    "BiLM",
    "BiLMConfig",
    "BiLSTMLayer",
    "CharCNN",
    "CharCNNConfig",
    "LayerState",
    "LexiconConfig",
    "Packing",
    "ScalarMix",
    "WordConfig",
]
