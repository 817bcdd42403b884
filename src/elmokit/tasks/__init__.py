"""Labelled data in, a model that labels text out: tagging, classification, intents with slots.

Importing this package is cheap: torch and the tasks themselves are imported when a name is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elmokit.tasks.comparison import Compared, MeasuredRun, compare, comparison_text
    from elmokit.tasks.evaluation import evaluate
    from elmokit.tasks.metrics import Scores
    from elmokit.tasks.model import Classifier, IntentModel, Tagger, TaskModel, load_task
    from elmokit.tasks.prediction import LabelledSpan, Prediction
    from elmokit.tasks.report import mixes_text, scores_text
    from elmokit.tasks.settings import (
        EncoderSettings,
        HeadSettings,
        Settings,
        TrainingSettings,
        task_settings,
    )
    from elmokit.tasks.training import Training, train

__all__ = [
    "TASKS",
    "Classifier",
    "Compared",
    "EncoderSettings",
    "HeadSettings",
    "IntentModel",
    "LabelledSpan",
    "MeasuredRun",
    "Prediction",
    "Scores",
    "Settings",
    "Tagger",
    "TaskModel",
    "Training",
    "TrainingSettings",
    "compare",
    "comparison_text",
    "evaluate",
    "load_task",
    "mixes_text",
    "scores_text",
    "task_settings",
    "train",
]

TASKS = ("tagger", "classifier", "intent")

_HOMES = {
    "comparison": ("Compared", "MeasuredRun", "compare", "comparison_text"),
    "evaluation": ("evaluate",),
    "metrics": ("Scores",),
    "model": ("Classifier", "IntentModel", "Tagger", "TaskModel", "load_task"),
    "prediction": ("LabelledSpan", "Prediction"),
    "report": ("mixes_text", "scores_text"),
    "settings": ("EncoderSettings", "HeadSettings", "Settings", "TrainingSettings", "task_settings"),
    "training": ("Training", "train"),
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 (what a name stands for)
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"elmokit.tasks.{home}"), name)
    raise AttributeError(f"module 'elmokit.tasks' has no attribute {name!r}")
