"""What of a sentence goes into a vector file: which layers, of tokens, of the whole, or of a word's uses."""

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from elmokit.base import check_option
from elmokit.embed.sentence import LayerChoice, Sentence, layer_index
from elmokit.embed.sentence_vectors import Pooler, SentencePooling
from elmokit.embed.text_embedder import TextEmbedder
from elmokit.errors import ConfigError
from elmokit.text import Input, may_contain
from elmokit.vectors import Layout, Row, check_ending

DType = Literal["float32", "float16"]


@dataclass(frozen=True, kw_only=True)
class FileChoice:
    """What of each sentence goes into the file.

    Attributes:
        layers: Which layers.
        pooling: How sentence vectors are made; None for vectors of tokens or uses.
        word: Whose uses; None for all tokens.
        match_case: Whether the word has to match in upper and lower case, too.
        layout: Shape and type of the vectors of a row.
        pool: Makes sentence vectors.
    """

    layers: LayerChoice
    pooling: SentencePooling | None
    word: str | None
    match_case: bool
    layout: Layout
    pool: Pooler | None = None

    @classmethod
    def of(
        cls,
        target: Path,
        embedder: TextEmbedder,
        *,
        layers: LayerChoice | None,
        dtype: DType,
        pooling: SentencePooling | None,
        word: str | None,
        match_case: bool,
    ) -> "FileChoice":
        """Check the settings of `embed_file` and fill in what was not said.

        Raises:
            ConfigError: A value is not allowed, or two contradict each other.
        """
        ending = check_ending(target)
        check_option("dtype", dtype, get_args(DType))
        if word is not None and pooling is not None:
            raise ConfigError(
                f"word={word!r} writes vectors of uses, pooling={pooling!r} those of sentences; choose one"
            )
        if word is not None and not word.strip():
            raise ConfigError(f"expected a word, found word={word!r}")
        if match_case and word is None:
            raise ConfigError("match_case=True has no effect without a word")
        pool = None
        if word is None and (pooling is not None or ending == ".npy"):
            pool = Pooler.of(embedder, pooling, layers)
            pooling, layers = pool.pooling, pool.layers
        of_tokens = pooling is None and word is None
        if layers is None:
            layers = "all" if of_tokens and ending not in (".csv", ".tsv") else "mix"
        found = [] if layers in ("mix", "average") else layer_index(layers, embedder.num_layers)
        layers = layers if isinstance(layers, str) else found  # -1 is the top layer's number
        numbers = tuple(found) if isinstance(found, list) else ()
        shape = (*([len(numbers)] if numbers else []), -1, embedder.dim)
        if pool is not None:
            shape, numbers = pool.shape, () if pool.fitted is not None else numbers
        layout = Layout(
            shape=shape,
            dtype=dtype,
            layers=numbers,
            uses=word is not None,
        )
        return cls(layers=layers, pooling=pooling, word=word, match_case=match_case, layout=layout, pool=pool)

    def settings(self) -> dict[str, Any]:
        """Return the choices as plain data."""
        return {
            "layers": self.layers,
            "pooling": self.pooling,
            "word": self.word,
            "match_case": self.match_case,
        }

    def needs(self, item: Input) -> bool:
        """Return whether this text has to be embedded; without the word it need not."""
        if self.word is None:
            return True
        return may_contain(item if isinstance(item, str) else " ".join(item), self.word)

    def empty_row(self, item: Input) -> Row:
        """Return the row of a text that does not have the word."""
        shape = [0 if size == -1 else size for size in self.layout.shape]
        text = item if isinstance(item, str) else " ".join(item)
        return Row(text=text, tokens=[], offsets=[], vectors=np.zeros(shape, np.float32))

    def row(self, sentence: Sentence) -> Row:
        """Return the row of an embedded sentence."""
        if self.word is not None:
            sentence = sentence.merged(sentence.find(self.word, match_case=self.match_case))
        vectors = sentence.select(self.layers) if self.pool is None else self.pool(sentence)
        return Row(text=sentence.text, tokens=sentence.tokens, offsets=sentence.offsets, vectors=vectors)


def model_settings(embedder: TextEmbedder) -> dict[str, Any]:
    """Return what of the embedder decides the numbers, besides the model, as plain data."""
    words = embedder.words_spec
    return {
        "tokenizer": embedder.tokenizer_spec.to_dict(),
        "words": None if words is None else words.to_dict(),
        "precision": embedder.precision,
    }


def origin(embedder: TextEmbedder) -> dict[str, Any]:
    """Return what a vector file says of its origin: model, engine and version."""
    return {"model": embedder.source, "engine": embedder.engine, "elmokit": version("elmokit")}
