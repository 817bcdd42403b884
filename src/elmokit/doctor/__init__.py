"""Say what a file or folder is, and what is wrong with it, or with a text.

descriptions    anything that elmokit writes, or reads as a model, as plain data
diagnosis       the same, checked
model_doctor    why a model does not load, or what is odd about it
text_doctor     classic mistakes in a text
"""

from elmokit.doctor.descriptions import describe
from elmokit.doctor.diagnosis import diagnose, is_cased, scripts_of
from elmokit.doctor.model_doctor import Finding
from elmokit.doctor.model_info import model_info
from elmokit.doctor.text_doctor import diagnose_text

__all__ = ["Finding", "describe", "diagnose", "diagnose_text", "is_cased", "model_info", "scripts_of"]
