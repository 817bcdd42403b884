"""ELMo as the first module of a SentenceTransformer, for encoding and training.

>>> from sentence_transformers import SentenceTransformer                          # doctest: +SKIP
>>> from sentence_transformers.sentence_transformer.modules import Pooling         # doctest: +SKIP
>>> elmo = Elmo("path/to/model")                                                   # doctest: +SKIP
>>> SentenceTransformer(modules=[elmo, Pooling(elmo.get_embedding_dimension())])   # doctest: +SKIP
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from elmokit.base import write_json
from elmokit.embed import Text, TextReader
from elmokit.errors import MissingExtra, ModelFileError
from elmokit.formats import UNRECORDED, ModelBundle, load_model, read_json
from elmokit.integrations.storage import store
from elmokit.integrations.token_ids import TokenIds, padded_layers, sentence_marks
from elmokit.model import ScalarMix
from elmokit.text import TokenizerSpec, make_tokenizer

try:
    from sentence_transformers.base.modules import InputModule
except ImportError as error:
    raise MissingExtra(
        "sentence-transformers", "sentence-transformers", "elmokit.integrations.sentence_transformers"
    ) from error

_MODEL, _SETTINGS = "elmo", "settings.json"


class Elmo(InputModule):  # type: ignore[misc]
    """Token vectors γ · Σ_j softmax(w)_j · h_j, where w, γ and all weights of the model can be trained.

    Untrained, the mix is the average of the layers; with mean pooling, `encode` then returns the same as
    `elmokit.load(model).encode`. `tokenizer` ("name" or "name:language") replaces the model's own;
    `max_seq_length` truncates texts to that many tokens.
    """

    save_in_root = False

    def __init__(
        self,
        model: str | Path | ModelBundle,
        *,
        tokenizer: str | None = None,
        max_seq_length: int | None = None,
    ) -> None:
        super().__init__()
        self.max_seq_length = max_seq_length  # SentenceTransformer reads and sets it
        bundle = model if isinstance(model, ModelBundle) else load_model(model)
        if tokenizer is not None:
            bundle = replace(bundle, tokenizer=TokenizerSpec.parse(tokenizer))
        self.bilm = bundle.model
        self.mix = ScalarMix(self.bilm.num_outputs)
        self._bundle = bundle
        recorded = tokenizer is not None or bundle.tokenizer != UNRECORDED
        self._reader = TextReader(make_tokenizer(bundle.tokenizer), self.bilm.config, recorded=recorded)
        self._token_ids = TokenIds(self.bilm.config, bundle.vocabulary, bundle.lexicon)
        self._marks = sentence_marks(bundle, self._token_ids)

    def preprocess(self, inputs: Sequence[Text], prompt: str | None = None, **_: object) -> dict[str, Any]:
        """Tokenise texts and return their padded ids."""
        texts = self._prepend_prompt(inputs, prompt) if prompt else inputs
        read = (self._reader(text)[: self.max_seq_length] for text in texts)
        sentences = [[token.text for token in tokens] for tokens in read]
        for sentence in sentences:
            self._reader.truncated(sentence)  # warns
        features: dict[str, Any] = self._token_ids.batch(sentences)
        if prompt:  # for a pooling that excludes it
            features["prompt_length"] = len(self._reader(prompt))
        return features

    def forward(self, features: dict[str, Any], **_: object) -> dict[str, Any]:
        """Add `token_embeddings` (B, T, 2P) to the features."""
        layers = padded_layers(self.bilm, self._marks, features, features["attention_mask"])
        return {**features, "token_embeddings": self.mix(layers)}

    def get_embedding_dimension(self) -> int:
        """Return 2P."""
        return self.bilm.config.output_dim

    def get_config_dict(self) -> dict[str, Any]:
        """Return what the library prints."""
        return {"model": self._bundle.source}

    def save(self, output_path: str, *_: object, **__: object) -> None:
        """Write the model as an elmokit folder, and its mix and `max_seq_length`."""
        store(self._bundle, Path(output_path) / _MODEL)
        assert self.mix.gamma is not None
        settings = {
            "weights": self.mix.weights.tolist(),
            "gamma": self.mix.gamma.item(),
            "max_seq_length": self.max_seq_length,
        }
        write_json(Path(output_path) / _SETTINGS, settings)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **_: object) -> "Elmo":
        """Load what `save` wrote; nothing is downloaded."""
        folder = Path(model_name_or_path) / subfolder
        settings = read_json(folder / _SETTINGS)
        module = cls(folder / _MODEL, max_seq_length=settings.get("max_seq_length"))
        try:
            weights, gamma = torch.tensor(settings["weights"]), torch.tensor(settings["gamma"])
            module.mix.load_state_dict({"weights": weights, "gamma": gamma})
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise ModelFileError(
                f"{folder / _SETTINGS}: expected the weights of {module.bilm.num_outputs} layers and "
                "a gamma; the file is damaged, get the folder again"
            ) from error
        return module
