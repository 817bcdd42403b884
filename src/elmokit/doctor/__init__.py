"""What is wrong with a model's files or with a text, and what a model is made of."""

from elmokit.doctor.model_doctor import Finding, diagnose
from elmokit.doctor.model_info import model_info
from elmokit.doctor.text_doctor import diagnose_text

__all__ = [
    "Finding",
    "diagnose",
    "diagnose_text",
    "model_info",
]
