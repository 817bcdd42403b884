"""Fast paths, each behind one interface.

gates, packing    what all LSTM loops share
lstm_inference    all layers over a packed batch, for embedding
native            the same in C++, optional; engine_choice chooses between the two
lstm_training     layers with a backward pass of their own, for pretraining and tasks
softmax_blocks    the softmax of pretraining
precision         products in float32, int8 and bfloat16
shared_weights    one copy of the weights for all processes of a machine
threads, memory, device, dropout, seeding
"""

from elmokit.kernels.device import find_device
from elmokit.kernels.dropout import Dropout, dropout
from elmokit.kernels.engine_choice import (
    TrainedLinear,
    engine_name,
    make_highway,
    make_inference_lstm,
    make_linear,
    training_engine_name,
    window_maxima,
)
from elmokit.kernels.gates import LayerWeights, add_to_forget_gate
from elmokit.kernels.lstm_training import bidirectional_lstm, lstm_window
from elmokit.kernels.memory import flushed_denormals, keep_freed_memory, peak_memory
from elmokit.kernels.packing import Packing, step_blocks
from elmokit.kernels.precision import (
    ROWS_TOGETHER,
    Precision,
    Product,
    int8_scale,
    make_product,
    resolve,
    supported,
    training_precision,
)
from elmokit.kernels.seeding import combined_seed, seeded
from elmokit.kernels.shared_weights import share_weights
from elmokit.kernels.softmax_blocks import softmax_gradients
from elmokit.kernels.threads import PairOfThreads, num_threads, side_by_side, whole_pieces

__all__ = [
    "ROWS_TOGETHER", "Dropout", "LayerWeights", "Packing", "PairOfThreads", "Precision", "Product",
    "TrainedLinear", "add_to_forget_gate", "bidirectional_lstm", "combined_seed", "dropout", "engine_name",
    "find_device", "flushed_denormals", "int8_scale", "keep_freed_memory", "lstm_window", "make_highway",
    "make_inference_lstm", "make_linear", "make_product", "num_threads", "peak_memory", "resolve", "seeded",
    "share_weights", "side_by_side", "softmax_gradients", "step_blocks", "supported", "training_engine_name",
    "training_precision", "whole_pieces", "window_maxima",
]  # fmt: skip
