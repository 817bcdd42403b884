"""elmokit: ELMo for today. Load any published ELMo, embed text exactly and fast on a plain CPU.

>>> import elmokit
>>> elmokit.load("en").embed("The bank raised its rates.").tokens
['The', 'bank', 'raised', 'its', 'rates', '.']

Names are imported when they are first used, so `import elmokit` is fast and does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from elmokit.errors import ConfigError, DataError, ElmoError, MissingExtra, ModelFileError, TrainingError

if TYPE_CHECKING:
    from elmokit.corpus import PreparedCorpus, PrepareSettings, prepare_corpus
    from elmokit.doctor import diagnose, diagnose_text, model_info
    from elmokit.embed import Embedder, Sentence, embed_file, load
    from elmokit.formats import ModelBundle, bundled_names, load_model, save_model
    from elmokit.language_model import LanguageModel, load_lm, perplexity_file
    from elmokit.model import ScalarMix
    from elmokit.pretraining import PerplexityChange, Recipe, pretrain, read_recipe
    from elmokit.search import nearest_uses
    from elmokit.tasks import TaskModel, evaluate, load_task, train
    from elmokit.text import TokenizerSpec, default_spec
    from elmokit.vectors import StoredSentence, VectorFile, read_vectors

__version__ = "0.2.0"
__all__ = [
    "ConfigError",
    "DataError",
    "ElmoError",
    "Embedder",
    "LanguageModel",
    "MissingExtra",
    "ModelBundle",
    "ModelFileError",
    "PerplexityChange",
    "PrepareSettings",
    "PreparedCorpus",
    "Recipe",
    "ScalarMix",
    "Sentence",
    "StoredSentence",
    "TaskModel",
    "TokenizerSpec",
    "TrainingError",
    "VectorFile",
    "bundled_names",
    "default_spec",
    "diagnose",
    "diagnose_text",
    "embed_file",
    "evaluate",
    "load",
    "load_lm",
    "load_model",
    "load_task",
    "model_info",
    "nearest_uses",
    "perplexity_file",
    "prepare_corpus",
    "pretrain",
    "read_recipe",
    "read_vectors",
    "save_model",
    "train",
]

# The room that each public name is imported from.
_ROOMS = {
    "corpus": ("PreparedCorpus", "PrepareSettings", "prepare_corpus"),
    "doctor": ("diagnose", "diagnose_text", "model_info"),
    "embed": ("Embedder", "Sentence", "embed_file", "load"),
    "formats": ("ModelBundle", "bundled_names", "load_model", "save_model"),
    "language_model": ("LanguageModel", "load_lm", "perplexity_file"),
    "model": ("ScalarMix",),
    "pretraining": ("PerplexityChange", "Recipe", "pretrain", "read_recipe"),
    "search": ("nearest_uses",),
    "tasks": ("TaskModel", "evaluate", "load_task", "train"),
    "text": ("TokenizerSpec", "default_spec"),
    "vectors": ("StoredSentence", "VectorFile", "read_vectors"),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> Any:  # noqa: ANN401 (the type depends on the name)
    """Import a public name when it is first used."""
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'elmokit' has no attribute {name!r}")
    return getattr(import_module(f"elmokit.{_ROOM_OF[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
