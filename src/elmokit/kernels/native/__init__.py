"""The native kernel: C++ for several instruction sets of x86-64, called by ctypes; optional."""

from elmokit.kernels.native.library import NativeEngine, engines, find_engine, training_engine, weight_blocks
from elmokit.kernels.native.native_encoder import NativeLinear, NativeMaxima
from elmokit.kernels.native.native_lstm import NativeLSTM
from elmokit.kernels.native.native_product import NativeProduct
from elmokit.kernels.native.native_training import NativeTrainingLSTM, SoftmaxGradients, native_softmax

__all__ = [
    "NativeEngine",
    "NativeLSTM",
    "NativeLinear",
    "NativeMaxima",
    "NativeProduct",
    "NativeTrainingLSTM",
    "SoftmaxGradients",
    "engines",
    "find_engine",
    "native_softmax",
    "training_engine",
    "weight_blocks",
]
