"""What all tasks share: data files, encoders and RNN, training, evaluation, saving."""

from elmokit.tasks.core.comparison import Compared, MeasuredRun, compare, comparison_text, draw_comparison
from elmokit.tasks.core.counting import ClassScore, Counted, Items, Scores, count_items, scores_from_counts
from elmokit.tasks.core.dataset import TaskData, find_part, read_data
from elmokit.tasks.core.evaluation import evaluate, mixes_text, scores_text
from elmokit.tasks.core.label_sets import by_frequency, check_labels, class_weights
from elmokit.tasks.core.labelled_files import (
    Formats,
    Tokenize,
    json_lines,
    numbered_lines,
    parallel_lines,
    string_list,
)
from elmokit.tasks.core.pictures import new_figure
from elmokit.tasks.core.protocol import Example, Head, Hidden, Item, Task
from elmokit.tasks.core.task_model import TaskModel, read_config
from elmokit.tasks.core.task_settings import EncoderSettings, HeadSettings, TaskSettings, TrainingSettings
from elmokit.tasks.core.text_input import TextInput, plain_data
from elmokit.tasks.core.training import Training, train

__all__ = [
    "ClassScore", "Compared", "Counted", "EncoderSettings", "Example", "Formats", "Head", "HeadSettings",
    "Hidden", "Item", "Items", "MeasuredRun", "Scores", "Task", "TaskData", "TaskModel", "TaskSettings",
    "TextInput", "Tokenize", "Training", "TrainingSettings", "by_frequency", "check_labels",
    "class_weights", "compare", "comparison_text", "count_items", "draw_comparison", "evaluate",
    "find_part", "json_lines", "mixes_text", "new_figure", "numbered_lines", "parallel_lines",
    "plain_data", "read_config", "read_data", "scores_from_counts", "scores_text", "string_list", "train",
]  # fmt: skip
