"""Files ↔ model: one module per format; `load_model` decides which."""

from elmokit.formats.bundle import ModelBundle, Softmax, SoftmaxFile
from elmokit.formats.doctor import Finding, diagnose
from elmokit.formats.load import UNRECORDED, bundled_names, load_model
from elmokit.formats.save import save_model
from elmokit.formats.text_doctor import diagnose_text

__all__ = [
    "UNRECORDED",
    "Finding",
    "ModelBundle",
    "Softmax",
    "SoftmaxFile",
    "bundled_names",
    "diagnose",
    "diagnose_text",
    "load_model",
    "save_model",
]
