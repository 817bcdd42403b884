"""What all tasks share: data files, encoders and RNN, training, evaluation, saving."""

from elmokit.tasks.core.attribution import log_odds
from elmokit.tasks.core.comparison import Compared, MeasuredRun, compare, comparison_text
from elmokit.tasks.core.comparison_report import compare_report
from elmokit.tasks.core.counting import ClassScore, Counted, Items, Scores, count_items, scores_from_counts
from elmokit.tasks.core.dataset import TaskData, find_part, read_data
from elmokit.tasks.core.decisions import Decision, choose, explain, overlap, refuse_at
from elmokit.tasks.core.evaluation import evaluate, mixes_text, scores_text
from elmokit.tasks.core.explanation import Explanation
from elmokit.tasks.core.label_sets import by_frequency, check_labels, class_weights, warn_of_labels
from elmokit.tasks.core.labelled_files import (
    Columns,
    Formats,
    Tokenize,
    json_lines,
    json_objects,
    numbered_lines,
    parallel_lines,
    string_list,
)
from elmokit.tasks.core.padding import attention, pad
from elmokit.tasks.core.pictures import draw_comparison
from elmokit.tasks.core.pooling import TextPooling, TokenPooling
from elmokit.tasks.core.protocol import Example, Head, Hidden, Item, Task
from elmokit.tasks.core.rnn import TaskRNN
from elmokit.tasks.core.tables import SEVERAL, Headings, LabelledRow, read_csv, read_tsv
from elmokit.tasks.core.task_folder import find_task_folder, read_config
from elmokit.tasks.core.task_model import TaskModel
from elmokit.tasks.core.task_settings import EncoderSettings, HeadSettings, TaskSettings, TrainingSettings
from elmokit.tasks.core.text_input import TextInput, plain_data
from elmokit.tasks.core.training import Training, train

__all__ = [
    "SEVERAL", "ClassScore", "Columns", "Compared", "Counted", "Decision", "EncoderSettings", "Example",
    "Explanation", "Formats", "Head", "HeadSettings", "Headings", "Hidden", "Item", "Items",
    "LabelledRow", "MeasuredRun", "Scores", "Task", "TaskData", "TaskModel", "TaskRNN", "TaskSettings",
    "TextInput", "TextPooling", "TokenPooling", "Tokenize", "Training", "TrainingSettings", "attention",
    "by_frequency", "check_labels", "choose", "class_weights", "compare", "compare_report",
    "comparison_text", "count_items", "draw_comparison", "evaluate", "explain", "find_part",
    "find_task_folder", "json_lines", "json_objects", "log_odds", "mixes_text", "numbered_lines",
    "overlap", "pad", "parallel_lines", "plain_data", "read_config", "read_csv", "read_data", "read_tsv",
    "refuse_at", "scores_from_counts", "scores_text", "string_list", "train", "warn_of_labels",
]  # fmt: skip
