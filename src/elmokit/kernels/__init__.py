"""Fast paths, each behind one interface.

gates, packing    what all LSTM loops share
lstm_inference    all layers of one direction over a packed batch, for embedding
lstm_training     layers with a backward pass of their own, for pretraining and tasks
precision         products in float32, int8 and bfloat16
threads, memory, device, dropout, seeding
"""

from elmokit.kernels.device import find_device
from elmokit.kernels.dropout import Dropout, dropout
from elmokit.kernels.gates import LayerWeights, add_to_forget_gate
from elmokit.kernels.lstm_inference import InferenceLSTM
from elmokit.kernels.lstm_training import bidirectional_lstm, lstm_window
from elmokit.kernels.memory import flushed_denormals, keep_freed_memory
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
from elmokit.kernels.threads import PairOfThreads, num_threads, side_by_side, whole_pieces

__all__ = [
    "ROWS_TOGETHER", "Dropout", "InferenceLSTM", "LayerWeights", "Packing", "PairOfThreads", "Precision",
    "Product", "add_to_forget_gate", "bidirectional_lstm", "combined_seed", "dropout", "find_device",
    "flushed_denormals", "int8_scale", "keep_freed_memory", "lstm_window", "make_product", "num_threads",
    "resolve", "seeded", "side_by_side", "step_blocks", "supported", "training_precision", "whole_pieces",
]  # fmt: skip
