"""The main job: text in, the vectors of its tokens out."""

from elmokit.embed.embed_file import DType, EmbedReport, embed_file
from elmokit.embed.embedder import Embedder, load
from elmokit.embed.engine import Batch, InferenceBiLM
from elmokit.embed.reader import Text, TextReader, batches_by_length, refuse_one_string, windows
from elmokit.embed.sentence import Floats, LayerChoice, Pooling, Sentence
from elmokit.embed.type_vectors import TypeVectors

__all__ = [
    "Batch", "DType", "EmbedReport", "Embedder", "Floats", "InferenceBiLM", "LayerChoice", "Pooling",
    "Sentence", "Text", "TextReader", "TypeVectors", "batches_by_length", "embed_file", "load",
    "refuse_one_string", "windows",
]  # fmt: skip
