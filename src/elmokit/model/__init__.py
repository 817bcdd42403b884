"""The network: token encoder, projected LSTMs of both directions, mixes of the layers. Knows torch alone."""

from elmokit.kernels import Packing
from elmokit.model.bilm import BiLM, State
from elmokit.model.carried import CarriedState
from elmokit.model.char_cnn import CharCNN, Highway
from elmokit.model.config import BiLMConfig, CharCNNConfig, LexiconConfig, WordConfig
from elmokit.model.crf import CRF
from elmokit.model.lexicon_encoder import LexiconEncoder
from elmokit.model.lstm import BiLSTMLayer, LayerState
from elmokit.model.mix import ScalarMix, normalise_layers
from elmokit.model.padded import encode_distinct, first_positions, num_characters, pad_layers, with_boundaries
from elmokit.model.softmax import Softmax

__all__ = [
    "CRF",
    "BiLM",
    "BiLMConfig",
    "BiLSTMLayer",
    "CarriedState",
    "CharCNN",
    "CharCNNConfig",
    "Highway",
    "LayerState",
    "LexiconConfig",
    "LexiconEncoder",
    "Packing",
    "ScalarMix",
    "Softmax",
    "State",
    "WordConfig",
    "encode_distinct",
    "first_positions",
    "normalise_layers",
    "num_characters",
    "pad_layers",
    "with_boundaries",
]
