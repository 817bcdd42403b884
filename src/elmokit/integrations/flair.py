"""ELMo as a flair embedding: a replacement for the one that flair removed together with AllenNLP.

from elmokit.integrations.flair import ElmoEmbeddings      # was: from flair.embeddings import ELMoEmbeddings
"""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from elmokit.base import check_option
from elmokit.embed import Embedder, Floats, Sentence
from elmokit.errors import MissingExtra
from elmokit.formats import ModelBundle, load_model
from elmokit.integrations.storage import from_files, to_files
from elmokit.integrations.token_ids import lowercased

try:
    import flair
    from flair.data import Sentence as FlairSentence
    from flair.embeddings.base import TokenEmbeddings, register_embeddings
except ImportError as error:
    raise MissingExtra("flair", "flair", "elmokit.integrations.flair") from error


@register_embeddings
class ElmoEmbeddings(TokenEmbeddings):  # type: ignore[misc]
    """Fixed vectors of flair's own tokens. What flair saves contains the model.

    Args:
        model: a path or name for `elmokit.load`, or a model in memory.
        options_file, weight_file: used instead of `model`, for files in different folders.
        embedding_mode: "all" layers concatenated, the "top" one, or their "average".
    """

    def __init__(
        self,
        model: str | Path | ModelBundle = "en",
        options_file: str | Path | None = None,
        weight_file: str | Path | None = None,
        embedding_mode: Literal["all", "top", "average"] = "all",
    ) -> None:
        check_option("embedding_mode", embedding_mode, ("all", "top", "average"))
        if isinstance(model, ModelBundle):
            bundle, origin = model, "stored"
        else:
            origin = str(options_file or model)
            bundle = load_model(origin, weight_file)
        self.name = f"elmo-{origin}-{embedding_mode}"
        self.embedding_mode = embedding_mode
        self.static_embeddings = True
        super().__init__()
        self.elmo = Embedder(bundle, device=str(flair.device))

    @property
    def embedding_length(self) -> int:
        """Return the size of a token's vector."""
        return self.elmo.dim * (self.elmo.num_layers if self.embedding_mode == "all" else 1)

    def _add_embeddings_internal(self, sentences: list[FlairSentence]) -> None:
        spec = self.elmo.tokenizer_spec
        texts = [lowercased((token.text for token in sentence), spec) for sentence in sentences]
        for sentence, embedded in zip(sentences, self.elmo.stream(texts), strict=True):
            vectors = torch.from_numpy(self._vectors(embedded)).to(flair.device)
            for token, vector in zip(sentence, vectors, strict=True):
                token.set_embedding(self.name, vector)

    def _vectors(self, sentence: Sentence) -> Floats:
        """Return the vectors (T, embedding_length) of a sentence."""
        chosen = sentence.select(self.embedding_mode)
        return np.concatenate(chosen, axis=-1) if self.embedding_mode == "all" else chosen

    def to_params(self) -> dict[str, Any]:
        """Return what flair puts into the file of a trained model."""
        return {
            "name": self.name,
            "embedding_mode": self.embedding_mode,
            "files": to_files(self.elmo.bundle),
        }

    @classmethod
    def from_params(cls, params: dict[str, Any]) -> "ElmoEmbeddings":
        """Make the embedding from what `to_params` returned."""
        embeddings = cls(from_files(params["files"]), embedding_mode=params["embedding_mode"])
        embeddings.name = params["name"]  # the stored weights of a stack refer to it by this name
        return embeddings

    def extra_repr(self) -> str:
        """Return what flair prints."""
        return f"model={self.name}"
