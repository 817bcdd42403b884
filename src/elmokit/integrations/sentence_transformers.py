"""ELMo as the first module of a SentenceTransformer, to encode with and to train.

>>> from sentence_transformers import SentenceTransformer                          # doctest: +SKIP
>>> from sentence_transformers.sentence_transformer.modules import Pooling         # doctest: +SKIP
>>> elmo = Elmo("path/to/model")                                                   # doctest: +SKIP
>>> SentenceTransformer(modules=[elmo, Pooling(elmo.get_embedding_dimension())])   # doctest: +SKIP
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from elmokit.embed import Reader, Text
from elmokit.errors import MissingExtra, ModelFileError
from elmokit.formats import UNRECORDED, ModelBundle, load_model, read_json
from elmokit.integrations.padded import Spelling, padded_layers, sentence_marks
from elmokit.integrations.storage import store
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
    """Token vectors: γ · Σ_j softmax(w)_j · h_j, where w, γ and all weights of the model can be trained.

    Untrained, the mix is the average of the layers, and with mean pooling after it `encode` gives what
    `elmokit.load(model).encode` gives.

    Args:
        model: what `elmokit.load` opens, or a model in memory.
        tokenizer: instead of the model's own: "name" or "name:language".
        max_seq_length: tokens of a text that are read; all when not given.
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
        self.max_seq_length = max_seq_length  # which SentenceTransformer.max_seq_length reads and sets
        bundle = model if isinstance(model, ModelBundle) else load_model(model)
        if tokenizer is not None:
            bundle = replace(bundle, tokenizer=TokenizerSpec.parse(tokenizer))
        self.bilm = bundle.model
        self.mix = ScalarMix(self.bilm.num_outputs)
        self._bundle = bundle
        config = self.bilm.config
        recorded = tokenizer is not None or bundle.tokenizer != UNRECORDED
        self._reader = Reader(make_tokenizer(bundle.tokenizer), config, recorded=recorded)
        self._spelling = Spelling(config, bundle.vocabulary, bundle.lexicon)
        self._marks = sentence_marks(bundle, self._spelling)

    def preprocess(self, inputs: Sequence[Text], prompt: str | None = None, **_: object) -> dict[str, Any]:
        """Texts to ids; see `padded.Spelling`."""
        texts = self._prepend_prompt(inputs, prompt) if prompt else inputs
        longest = self.max_seq_length
        sentences = [[token.text for token in self._reader(text)[:longest]] for text in texts]
        for sentence in sentences:
            self._reader.truncated(sentence)  # warns
        features: dict[str, Any] = self._spelling.batch(sentences)
        if prompt:  # for a pooling that leaves it out
            features["prompt_length"] = len(self._reader(prompt))
        return features

    def forward(self, features: dict[str, Any], **_: object) -> dict[str, Any]:
        """Adds `token_embeddings` (B, T, 2P)."""
        layers = padded_layers(self.bilm, self._marks, features, features["attention_mask"])
        return {**features, "token_embeddings": self.mix(layers)}

    def get_embedding_dimension(self) -> int:
        """2P."""
        return self.bilm.config.output_dim

    def get_config_dict(self) -> dict[str, Any]:
        """For printing."""
        return {"model": self._bundle.source}

    def save(self, output_path: str, *_: object, **__: object) -> None:
        """Write the model, as an elmokit folder, and the mix and the length."""
        store(self._bundle, Path(output_path) / _MODEL)
        assert self.mix.gamma is not None
        settings = {
            "weights": self.mix.weights.tolist(),
            "gamma": self.mix.gamma.item(),
            "max_seq_length": self.max_seq_length,
        }
        (Path(output_path) / _SETTINGS).write_text(json.dumps(settings), encoding="utf-8")

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **_: object) -> "Elmo":
        """Read what `save` wrote; nothing is downloaded."""
        folder = Path(model_name_or_path) / subfolder
        settings = read_json(folder / _SETTINGS)
        module = cls(folder / _MODEL, max_seq_length=settings.get("max_seq_length"))
        try:
            weights, gamma = torch.tensor(settings["weights"]), torch.tensor(settings["gamma"])
            module.mix.load_state_dict({"weights": weights, "gamma": gamma})
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise ModelFileError(
                f"{folder / _SETTINGS}: expected the weights of {module.bilm.num_outputs} layers and "
                "a gamma; get the folder again"
            ) from error
        return module
