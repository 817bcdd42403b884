"""Labelled data in, a model that labels text out: one package per task, and `core` for what they share.

Importing this package is cheap: torch and the tasks themselves are imported when a name is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elmokit.tasks.by_name import compare, compare_report, find_task, load_task, task_settings, train
    from elmokit.tasks.classifier import Classifier
    from elmokit.tasks.core import (
        Compared,
        EncoderSettings,
        Explanation,
        MeasuredRun,
        Scores,
        TaskModel,
        TaskSettings,
        Training,
        TrainingSettings,
        comparison_text,
        evaluate,
        explain,
        mixes_text,
        scores_text,
    )
    from elmokit.tasks.coreference import CoreferenceModel
    from elmokit.tasks.entailment import EntailmentModel
    from elmokit.tasks.intent import IntentModel
    from elmokit.tasks.reading import ReadingModel
    from elmokit.tasks.relations import RelationModel, evaluate_end_to_end
    from elmokit.tasks.reply import ReplyModel
    from elmokit.tasks.roles import RoleLabeller
    from elmokit.tasks.tagger import LabelledSpan, Tagger
    from elmokit.tasks.translate import TranslationModel

__all__ = [
    "TASKS", "Classifier", "Compared", "CoreferenceModel", "EncoderSettings", "EntailmentModel",
    "Explanation", "IntentModel", "LabelledSpan", "MeasuredRun", "ReadingModel", "RelationModel",
    "ReplyModel", "RoleLabeller", "Scores", "Tagger", "TaskModel", "TaskSettings", "Training",
    "TrainingSettings", "TranslationModel", "compare", "compare_report", "comparison_text",
    "evaluate", "evaluate_end_to_end", "explain", "find_task", "load_task", "mixes_text",
    "scores_text", "task_settings", "train",
]  # fmt: skip

# Each package has the model class of its task as MODEL.
TASKS = {
    "tagger": "elmokit.tasks.tagger",
    "classifier": "elmokit.tasks.classifier",
    "intent": "elmokit.tasks.intent",
    "entailment": "elmokit.tasks.entailment",
    "reading": "elmokit.tasks.reading",
    "roles": "elmokit.tasks.roles",
    "coreference": "elmokit.tasks.coreference",
    "relations": "elmokit.tasks.relations",
    "translate": "elmokit.tasks.translate",
    "reply": "elmokit.tasks.reply",
}

_ELSEWHERE = {
    "by_name": ("compare", "compare_report", "find_task", "load_task", "task_settings", "train"),
    "classifier": ("Classifier",),
    "coreference": ("CoreferenceModel",),
    "entailment": ("EntailmentModel",),
    "intent": ("IntentModel",),
    "reading": ("ReadingModel",),
    "relations": ("RelationModel", "evaluate_end_to_end"),
    "reply": ("ReplyModel",),
    "roles": ("RoleLabeller",),
    "tagger": ("LabelledSpan", "Tagger"),
    "translate": ("TranslationModel",),
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 (what a name stands for)
    if name not in __all__:
        raise AttributeError(f"module 'elmokit.tasks' has no attribute {name!r}")
    home = next((home for home, names in _ELSEWHERE.items() if name in names), "core")
    return getattr(import_module(f"elmokit.tasks.{home}"), name)
