"""The networks as readable modules, the reference for the fast paths in `kernels`.

token_encoder     what every token encoder offers; char_cnn, lexicon_encoder and vector_table are the encoders
bidirectional     the biLM: its encoder and its layers (lstm, joined_lstm; gated_cnn, causal_transformer)
mix, softmax      from the layers to one vector, from the top layer to words
crf               tags of a sequence
fitted_pooling    from the layers of tokens to a sentence vector
padded            batches with padding around a network without
"""

from elmokit.kernels import Packing
from elmokit.model.bidirectional import BiLM, State, read_at_once
from elmokit.model.carried import CarriedState
from elmokit.model.char_cnn import CharCNN, CharCNNConfig, Highway
from elmokit.model.config import BiLMConfig, LayerKind
from elmokit.model.crf import CRF
from elmokit.model.distinct import encode_distinct, encode_distinct_rows
from elmokit.model.fill_weights import FillWeights
from elmokit.model.fitted_pooling import FittedPooling, fit_statistics
from elmokit.model.joined_lstm import JoinedLSTM
from elmokit.model.lexicon_encoder import LexiconConfig, LexiconEncoder
from elmokit.model.lstm import BiLSTMLayer, LayerState
from elmokit.model.mix import MixChoice, ScalarMix, normalise_layers
from elmokit.model.padded import first_positions, num_characters, pad_layers, with_boundaries
from elmokit.model.softmax import Softmax
from elmokit.model.token_encoder import Inputs
from elmokit.model.vector_table import VectorTable, WordConfig

__all__ = [
    "CRF", "BiLM", "BiLMConfig", "BiLSTMLayer", "CarriedState", "CharCNN", "CharCNNConfig", "FillWeights",
    "FittedPooling", "Highway", "Inputs", "JoinedLSTM", "LayerKind", "LayerState", "LexiconConfig",
    "LexiconEncoder", "MixChoice", "Packing", "ScalarMix", "Softmax", "State", "VectorTable", "WordConfig",
    "encode_distinct", "encode_distinct_rows", "first_positions", "fit_statistics", "normalise_layers",
    "num_characters", "pad_layers", "read_at_once", "with_boundaries",
]  # fmt: skip
