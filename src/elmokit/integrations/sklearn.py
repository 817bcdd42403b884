"""ELMo as a scikit-learn transformer: one vector per text, for pipelines and grid searches.

>>> from sklearn.linear_model import LogisticRegression
>>> from sklearn.pipeline import make_pipeline
>>> make_pipeline(ElmoVectorizer("path/to/model"), LogisticRegression())          # doctest: +SKIP
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from elmokit.embed import Embedder, Floats, Pooling, Sentence, Text, load_elmo, refuse_one_string
from elmokit.errors import ConfigError, MissingExtra

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
except ImportError as error:
    raise MissingExtra("scikit-learn", "sklearn", "elmokit.integrations.sklearn") from error

# An embedder serves one thread at a time, but joblib may run several.
_one_at_a_time = Lock()


class ElmoVectorizer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The sentence vectors of texts, as `Embedder.encode` returns them. Nothing is fitted.

    The estimator and its pickle hold the path of the model, not the weights, so a grid search copies little.
    All estimators of a process share the two models that were used last.

    Args:
        model: a path or name for `elmokit.load`.
        pooling: "mean", "max" or "ends"; see `Sentence.pool`.
        layer_weights: the weight of each layer, the token layer first; by default the layers are averaged.
        tokenizer, precision: as for `elmokit.load`.
    """

    def __init__(
        self,
        model: str | Path = "en",
        *,
        pooling: Pooling = "mean",
        layer_weights: Sequence[float] | None = None,
        tokenizer: str | None = None,
        precision: str = "float32",
    ) -> None:
        self.model = model
        self.pooling = pooling
        self.layer_weights = layer_weights
        self.tokenizer = tokenizer
        self.precision = precision

    def fit(self, X: Iterable[Text], y: object = None) -> "ElmoVectorizer":
        """Load the model and check the settings; the texts are not used."""
        refuse_one_string(X)
        embedder = self._embedder()
        with _one_at_a_time:
            self._pool(embedder.embed(""))
        return self

    def transform(self, X: Iterable[Text]) -> Floats:
        """Return one row for each text (a string or a list of tokens), (n, 2P) float32."""
        refuse_one_string(X)
        embedder = self._embedder()
        with _one_at_a_time:
            rows = [self._pool(sentence) for sentence in embedder.stream(X)]
        return np.stack(rows) if rows else np.zeros((0, embedder.dim), np.float32)

    @property
    def _n_features_out(self) -> int:
        """Return 2P, for `get_feature_names_out`."""
        return self._embedder().dim

    def _embedder(self) -> Embedder:
        return _open(str(self.model), self.tokenizer, self.precision)

    def _pool(self, sentence: Sentence) -> Floats:
        if self.layer_weights is not None:
            weights, layers = np.asarray(self.layer_weights, np.float32), sentence.layers
            if len(weights) != len(layers):
                raise ConfigError(
                    f"layer_weights has {len(weights)} numbers, the model {len(layers)} layers; "
                    "give one for each"
                )
            sentence = replace(sentence, vectors=np.tensordot(weights, layers, axes=1))
        return sentence.pool(self.pooling)

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401 (scikit-learn has no types)
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.transformer_tags.preserves_dtype = ["float32"]
        tags.requires_fit = False
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return True


@lru_cache(maxsize=2)
def _open(model: str, tokenizer: str | None, precision: str) -> Embedder:
    return load_elmo(model, tokenizer=tokenizer, precision=precision)
