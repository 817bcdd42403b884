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
    from elmokit.doctor import Finding, diagnose, diagnose_text, model_info
    from elmokit.embed import Embedder, EmbedReport, Sentence, embed_file, load
    from elmokit.formats import ModelBundle, bundled_names, load_model, save_model
    from elmokit.language_model import (
        Candidate,
        LanguageModel,
        Perplexity,
        SentenceScore,
        load_lm,
        perplexity_file,
    )
    from elmokit.model import ScalarMix
    from elmokit.pretraining import PerplexityChange, Recipe, pretrain, read_recipe
    from elmokit.search import Use, nearest_uses
    from elmokit.tasks import (
        Classifier,
        EncoderSettings,
        IntentModel,
        LabelledSpan,
        Scores,
        Tagger,
        TaskModel,
        Training,
        TrainingSettings,
        compare,
        evaluate,
        load_task,
        mixes_text,
        scores_text,
        task_settings,
        train,
    )
    from elmokit.text import TokenizerSpec, default_spec
    from elmokit.vectors import StoredSentence, VectorFile, read_vectors

__version__ = "0.2.0"
__all__ = [
    "Candidate",
    "Classifier",
    "ConfigError",
    "DataError",
    "ElmoError",
    "EmbedReport",
    "Embedder",
    "EncoderSettings",
    "Finding",
    "IntentModel",
    "LabelledSpan",
    "LanguageModel",
    "MissingExtra",
    "ModelBundle",
    "ModelFileError",
    "Perplexity",
    "PerplexityChange",
    "PrepareSettings",
    "PreparedCorpus",
    "Recipe",
    "ScalarMix",
    "Scores",
    "Sentence",
    "SentenceScore",
    "StoredSentence",
    "Tagger",
    "TaskModel",
    "TokenizerSpec",
    "Training",
    "TrainingError",
    "TrainingSettings",
    "Use",
    "VectorFile",
    "bundled_names",
    "compare",
    "default_spec",
    "diagnose",
    "diagnose_text",
    "embed_file",
    "evaluate",
    "load",
    "load_lm",
    "load_model",
    "load_task",
    "mixes_text",
    "model_info",
    "nearest_uses",
    "perplexity_file",
    "prepare_corpus",
    "pretrain",
    "read_recipe",
    "read_vectors",
    "save_model",
    "scores_text",
    "task_settings",
    "train",
]

# The room that each public name is imported from.
_ROOMS = {
    "corpus": "PreparedCorpus PrepareSettings prepare_corpus",
    "doctor": "Finding diagnose diagnose_text model_info",
    "embed": "EmbedReport Embedder Sentence embed_file load",
    "formats": "ModelBundle bundled_names load_model save_model",
    "language_model": "Candidate LanguageModel Perplexity SentenceScore load_lm perplexity_file",
    "model": "ScalarMix",
    "pretraining": "PerplexityChange Recipe pretrain read_recipe",
    "search": "Use nearest_uses",
    "tasks": (
        "Classifier EncoderSettings IntentModel LabelledSpan Scores Tagger TaskModel Training "
        "TrainingSettings compare evaluate load_task mixes_text scores_text task_settings train"
    ),
    "text": "TokenizerSpec default_spec",
    "vectors": "StoredSentence VectorFile read_vectors",
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names.split()}


def __getattr__(name: str) -> Any:  # noqa: ANN401 (the type depends on the name)
    """Import a public name when it is first used."""
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'elmokit' has no attribute {name!r}")
    return getattr(import_module(f"elmokit.{_ROOM_OF[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
