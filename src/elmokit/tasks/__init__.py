"""Labelled data in, a model that labels text out: tagging, classification, intents with slots."""

from elmokit.tasks.evaluation import evaluate
from elmokit.tasks.metrics import Scores
from elmokit.tasks.model import Classifier, IntentModel, Tagger, TaskModel
from elmokit.tasks.prediction import LabelledSpan, Prediction
from elmokit.tasks.settings import EncoderSettings, HeadSettings, Settings, TrainingSettings
from elmokit.tasks.training import Training, train

__all__ = [
    "Classifier",
    "EncoderSettings",
    "HeadSettings",
    "IntentModel",
    "LabelledSpan",
    "Prediction",
    "Scores",
    "Settings",
    "Tagger",
    "TaskModel",
    "Training",
    "TrainingSettings",
    "evaluate",
    "train",
]
