"""Check the files of a model, or a text, and describe a model."""

from elmokit.doctor.model_doctor import Finding, diagnose
from elmokit.doctor.model_info import model_info
from elmokit.doctor.text_doctor import diagnose_text

__all__ = [
    "Finding",
    "diagnose",
    "diagnose_text",
    "model_info",
]
