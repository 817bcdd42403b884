"""The network: token encoder, projected LSTMs of both directions, mixes of the layers. Knows torch alone."""

from elmokit.model.bilm import BiLM
from elmokit.model.char_cnn import CharCNN
from elmokit.model.config import BiLMConfig, CharCNNConfig, LexiconConfig, WordConfig
from elmokit.model.inference import InferenceBiLM
from elmokit.model.lstm import BiLSTMLayer, LayerState, Packing
from elmokit.model.mix import ScalarMix

__all__ = [
    "BiLM",
    "BiLMConfig",
    "BiLSTMLayer",
    "CharCNN",
    "CharCNNConfig",
    "InferenceBiLM",
    "LayerState",
    "LexiconConfig",
    "Packing",
    "ScalarMix",
    "WordConfig",
]
