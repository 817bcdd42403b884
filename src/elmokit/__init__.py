"""elmokit: ELMo for today. Load any published ELMo, embed text exactly and fast on a plain CPU.

>>> import elmokit
>>> elmokit.load("en").embed("The bank raised its rates.").tokens
['The', 'bank', 'raised', 'its', 'rates', '.']

Names are imported when they are first used, so `import elmokit` is fast and does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from elmokit.errors import (
    BusyError,
    ConfigError,
    DataError,
    ElmoError,
    MissingExtra,
    ModelFileError,
    TrainingError,
)

if TYPE_CHECKING:
    from elmokit.corpus import PreparedCorpus, PrepareSettings, prepare_corpus
    from elmokit.doctor import Finding, describe, diagnose, diagnose_text, model_info
    from elmokit.embed import (
        Embedder,
        EmbedEstimate,
        EmbedReport,
        Sentence,
        VectorExplanation,
        embed_file,
        estimate_file,
        explain_vector,
        fit_pooling,
        store_pooling,
    )
    from elmokit.encoders import load
    from elmokit.formats import ModelBundle, bundled_names, bundled_task_names, load_model, save_model
    from elmokit.graph import GraphEdge, GraphNode, KnowledgeGraph, LinkSettings, build_graph, read_graph
    from elmokit.language_model import (
        Candidate,
        LanguageModel,
        MaskedLanguageModel,
        MaskedScore,
        Perplexity,
        SentenceScore,
        load_lm,
        perplexity_file,
    )
    from elmokit.model import ScalarMix
    from elmokit.pretraining import BertRecipe, MaskedScores, PerplexityChange, Recipe, pretrain, read_recipe
    from elmokit.search import (
        Document,
        Hit,
        Index,
        IndexReport,
        Match,
        PassageSettings,
        RetrievalScores,
        Use,
        WordUse,
        WordUses,
        evaluate_search,
        find_uses,
        nearest_uses,
        read_documents,
        read_judgements,
        read_queries,
        read_run,
        score_run,
        write_run,
    )
    from elmokit.serving import ServeSettings, make_app, serve
    from elmokit.tasks import (
        Classifier,
        CoreferenceModel,
        EncoderSettings,
        EntailmentModel,
        Explanation,
        IntentModel,
        LabelledSpan,
        ReadingModel,
        RelationModel,
        ReplyModel,
        RoleLabeller,
        Scores,
        Tagger,
        TaskModel,
        Training,
        TrainingSettings,
        TranslationModel,
        compare,
        compare_report,
        evaluate,
        evaluate_end_to_end,
        explain,
        load_task,
        mixes_text,
        scores_text,
        task_settings,
        train,
    )
    from elmokit.text import TextColumn, TokenizerSpec, default_spec
    from elmokit.vectors import StoredSentence, VectorFile, read_vectors

__version__ = "0.2.0"
__all__ = [
    "BertRecipe",
    "BusyError",
    "Candidate",
    "Classifier",
    "ConfigError",
    "CoreferenceModel",
    "DataError",
    "Document",
    "ElmoError",
    "EmbedEstimate",
    "EmbedReport",
    "Embedder",
    "EncoderSettings",
    "EntailmentModel",
    "Explanation",
    "Finding",
    "GraphEdge",
    "GraphNode",
    "Hit",
    "Index",
    "IndexReport",
    "IntentModel",
    "KnowledgeGraph",
    "LabelledSpan",
    "LanguageModel",
    "LinkSettings",
    "MaskedLanguageModel",
    "MaskedScore",
    "MaskedScores",
    "Match",
    "MissingExtra",
    "ModelBundle",
    "ModelFileError",
    "PassageSettings",
    "Perplexity",
    "PerplexityChange",
    "PrepareSettings",
    "PreparedCorpus",
    "ReadingModel",
    "Recipe",
    "RelationModel",
    "ReplyModel",
    "RetrievalScores",
    "RoleLabeller",
    "ScalarMix",
    "Scores",
    "Sentence",
    "SentenceScore",
    "ServeSettings",
    "StoredSentence",
    "Tagger",
    "TaskModel",
    "TextColumn",
    "TokenizerSpec",
    "Training",
    "TrainingError",
    "TrainingSettings",
    "TranslationModel",
    "Use",
    "VectorExplanation",
    "VectorFile",
    "WordUse",
    "WordUses",
    "build_graph",
    "bundled_names",
    "bundled_task_names",
    "compare",
    "compare_report",
    "default_spec",
    "describe",
    "diagnose",
    "diagnose_text",
    "embed_file",
    "estimate_file",
    "evaluate",
    "evaluate_end_to_end",
    "evaluate_search",
    "explain",
    "explain_vector",
    "find_uses",
    "fit_pooling",
    "load",
    "load_lm",
    "load_model",
    "load_task",
    "make_app",
    "mixes_text",
    "model_info",
    "nearest_uses",
    "perplexity_file",
    "prepare_corpus",
    "pretrain",
    "read_documents",
    "read_graph",
    "read_judgements",
    "read_queries",
    "read_recipe",
    "read_run",
    "read_vectors",
    "save_model",
    "score_run",
    "scores_text",
    "serve",
    "store_pooling",
    "task_settings",
    "train",
    "write_run",
]

# The room that each public name is imported from.
_ROOMS = {
    "corpus": "PreparedCorpus PrepareSettings prepare_corpus",
    "doctor": "Finding describe diagnose diagnose_text model_info",
    "embed": (
        "EmbedEstimate EmbedReport Embedder Sentence VectorExplanation embed_file estimate_file "
        "explain_vector fit_pooling store_pooling"
    ),
    "encoders": "load",
    "formats": "ModelBundle bundled_names bundled_task_names load_model save_model",
    "graph": "GraphEdge GraphNode KnowledgeGraph LinkSettings build_graph read_graph",
    "language_model": (
        "Candidate LanguageModel MaskedLanguageModel MaskedScore Perplexity SentenceScore load_lm "
        "perplexity_file"
    ),
    "model": "ScalarMix",
    "pretraining": "BertRecipe MaskedScores PerplexityChange Recipe pretrain read_recipe",
    "search": (
        "Document Hit Index IndexReport Match PassageSettings RetrievalScores Use WordUse WordUses "
        "evaluate_search find_uses nearest_uses read_documents read_judgements read_queries "
        "read_run score_run write_run"
    ),
    "serving": "ServeSettings make_app serve",
    "tasks": (
        "Classifier CoreferenceModel EncoderSettings EntailmentModel Explanation IntentModel "
        "LabelledSpan ReadingModel RelationModel ReplyModel RoleLabeller Scores Tagger TaskModel "
        "Training TrainingSettings TranslationModel compare compare_report evaluate "
        "evaluate_end_to_end explain load_task mixes_text scores_text task_settings train"
    ),
    "text": "TextColumn TokenizerSpec default_spec",
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
