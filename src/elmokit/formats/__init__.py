"""Read and write model files: one module per format. `load_model` finds out which it is."""

from elmokit.formats.allennlp_layout import allennlp_entries
from elmokit.formats.archives import unpacked
from elmokit.formats.bilm_hdf5 import dataset_shapes, holds_vectors, holds_weights, read_dataset, read_weights
from elmokit.formats.bundle import ModelBundle, SoftmaxFile
from elmokit.formats.inspect import describe_file, file_kind, read_json, try_json
from elmokit.formats.layout import Entry, check_dtypes, check_shapes
from elmokit.formats.load import (
    BUNDLED,
    BUNDLED_TASKS,
    UNRECORDED,
    bundled_names,
    bundled_task_names,
    find_model,
    load_model,
    model_home,
)
from elmokit.formats.native import file_sha256, looks_native
from elmokit.formats.options import looks_like_options
from elmokit.formats.pickled import load_pickled
from elmokit.formats.pooling_file import write_pooling
from elmokit.formats.save import save_model
from elmokit.formats.tensor_file import StoredType, read_tensors, write_tensors
from elmokit.formats.tf_checkpoint import is_checkpoint, latest_checkpoint
from elmokit.formats.transformers_folder import WORDS_SETTING, TransformersModel, open_transformers

__all__ = [
    "BUNDLED",
    "BUNDLED_TASKS",
    "UNRECORDED",
    "WORDS_SETTING",
    "Entry",
    "ModelBundle",
    "SoftmaxFile",
    "StoredType",
    "TransformersModel",
    "allennlp_entries",
    "bundled_names",
    "bundled_task_names",
    "check_dtypes",
    "check_shapes",
    "dataset_shapes",
    "describe_file",
    "file_kind",
    "file_sha256",
    "find_model",
    "holds_vectors",
    "holds_weights",
    "is_checkpoint",
    "latest_checkpoint",
    "load_model",
    "load_pickled",
    "looks_like_options",
    "looks_native",
    "model_home",
    "open_transformers",
    "read_dataset",
    "read_json",
    "read_tensors",
    "read_weights",
    "save_model",
    "try_json",
    "unpacked",
    "write_pooling",
    "write_tensors",
]
