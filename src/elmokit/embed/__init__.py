"""The main job: text in, the vectors of its tokens out."""

from elmokit.embed.embed_estimate import EmbedEstimate, estimate_file
from elmokit.embed.embed_file import EmbedReport, embed_file
from elmokit.embed.embed_lines import embed_lines
from elmokit.embed.embedder import Embedder, EmbedderSettings, load_elmo
from elmokit.embed.engine import Batch, InferenceBiLM
from elmokit.embed.file_choice import DType, FileChoice, model_settings, origin
from elmokit.embed.occlusion import VectorExplanation, explain_vector
from elmokit.embed.reader import (
    Text,
    TextReader,
    batches_by_length,
    refuse_one_string,
    refuse_unless,
    windows,
)
from elmokit.embed.sentence import Floats, LayerChoice, Pooling, Sentence, layer_index
from elmokit.embed.sentence_vectors import Pooler, SentencePooling, fit_pooling, store_pooling
from elmokit.embed.text_embedder import PreparedText, Reader, TextEmbedder
from elmokit.embed.type_vectors import TypeVectors

__all__ = [
    "Batch", "DType", "EmbedEstimate", "EmbedReport", "Embedder", "EmbedderSettings", "FileChoice",
    "Floats", "InferenceBiLM", "LayerChoice", "Pooler", "Pooling", "PreparedText", "Reader",
    "Sentence", "SentencePooling", "Text", "TextEmbedder", "TextReader", "TypeVectors",
    "VectorExplanation", "batches_by_length", "embed_file", "embed_lines", "estimate_file",
    "explain_vector", "fit_pooling", "layer_index", "load_elmo", "model_settings", "origin",
    "refuse_one_string", "refuse_unless", "store_pooling", "windows",
]  # fmt: skip
