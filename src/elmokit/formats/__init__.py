"""Files ↔ model: one module per format; `load_model` decides which."""

from elmokit.formats.bundle import ModelBundle, Softmax, SoftmaxFile
from elmokit.formats.load import UNRECORDED, bundled_names, load_model
from elmokit.formats.save import save_model

__all__ = [
    "UNRECORDED",
    "ModelBundle",
    "Softmax",
    "SoftmaxFile",
    "bundled_names",
    "load_model",
    "save_model",
]
