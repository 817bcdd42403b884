"""ELMo as a flair embedding, in place of the one that flair dropped with AllenNLP.

from elmokit.integrations.flair import ElmoEmbeddings      # was: from flair.embeddings import ELMoEmbeddings
"""

from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from elmokit.embed import Embedder
from elmokit.errors import ConfigError, MissingExtra
from elmokit.formats import ModelBundle, load_model
from elmokit.integrations.storage import from_files, to_files
from elmokit.integrations.words import as_read

try:
    import flair
    from flair.data import Sentence
    from flair.embeddings.base import TokenEmbeddings, register_embeddings
except ImportError as error:
    raise MissingExtra("flair", "flair", "elmokit.integrations.flair") from error

EmbeddingMode = Literal["all", "top", "average"]


@register_embeddings
class ElmoEmbeddings(TokenEmbeddings):  # type: ignore[misc]
    """Vectors of flair's own tokens; they are not trained. What flair saves has the model in it.

    Args:
        model: what `elmokit.load` opens.
        options_file, weight_file: instead of `model`, where the two lie apart.
        embedding_mode: "all" layers one after another, the "top" one, or their "average".
    """

    def __init__(
        self,
        model: str | Path | ModelBundle = "en",
        options_file: str | Path | None = None,
        weight_file: str | Path | None = None,
        embedding_mode: EmbeddingMode = "all",
    ) -> None:
        if embedding_mode not in get_args(EmbeddingMode):
            raise ConfigError(f"embedding_mode must be all, top or average, found {embedding_mode!r}")
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
        """The numbers of a token's vector."""
        return self.elmo.dim * (self.elmo.num_layers if self.embedding_mode == "all" else 1)

    def _add_embeddings_internal(self, sentences: list[Sentence]) -> None:
        spec = self.elmo.tokenizer_spec
        texts = [as_read((token.text for token in sentence), spec) for sentence in sentences]
        for sentence, embedded in zip(sentences, self.elmo.stream(texts), strict=True):
            vectors = self._choose(embedded.to_torch()).to(flair.device)
            for token, vector in zip(sentence, vectors, strict=True):
                token.set_embedding(self.name, vector)

    def _choose(self, layers: Tensor) -> Tensor:
        """(L+1, T, 2P) → (T, embedding_length)."""
        if self.embedding_mode == "all":
            return torch.cat([*layers], dim=-1)
        return layers[-1] if self.embedding_mode == "top" else layers.mean(dim=0)

    def to_params(self) -> dict[str, Any]:
        """What flair puts into the file of a trained model."""
        return {
            "name": self.name,
            "embedding_mode": self.embedding_mode,
            "files": to_files(self.elmo.bundle),
        }

    @classmethod
    def from_params(cls, params: dict[str, Any]) -> "ElmoEmbeddings":
        """The inverse of `to_params`."""
        embeddings = cls(from_files(params["files"]), embedding_mode=params["embedding_mode"])
        embeddings.name = params["name"]  # under which the stored weights of a stack know it
        return embeddings

    def extra_repr(self) -> str:
        """For flair's own printing."""
        return f"model={self.name}"
