import pickle

import numpy as np
import pytest

import elmokit
from elmokit.errors import ConfigError, ModelFileError
from elmokit.formats import save_model
from tests.tiny import wide_bundle

pytest.importorskip("sklearn", reason="pip install 'elmokit[sklearn]' to test the vectorizer")
import joblib
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks
from sklearn.utils.validation import validate_data

from elmokit.integrations.sklearn import ElmoVectorizer

TEXTS = ["the cat sat", "", ["the", "river", "bank"], "a bank pays interest"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "tiny"
    save_model(wide_bundle(), folder)
    return folder


@pytest.mark.parametrize("pooling", ["mean", "max", "ends"])
def test_numbers_are_encodes(model, pooling):
    found = ElmoVectorizer(model, pooling=pooling).fit_transform(TEXTS)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, elmokit.load(model).encode(TEXTS, pooling=pooling))


def test_layer_weights(model):
    found = ElmoVectorizer(model, layer_weights=[0.2, 0, 3]).transform(TEXTS[:1])
    layers = elmokit.load(model).embed("the cat sat").layers
    np.testing.assert_allclose(found[0], (0.2 * layers[0] + 3 * layers[2]).mean(axis=0), atol=1e-6)
    with pytest.raises(ConfigError, match="has 2 numbers, the model 3 layers; give one for each"):
        ElmoVectorizer(model, layer_weights=[1, 1]).fit(TEXTS)


def test_no_texts_and_names_of_columns(model):
    vectorizer = ElmoVectorizer(model)
    assert vectorizer.transform([]).shape == (0, 64)
    assert vectorizer.get_feature_names_out().tolist() == [f"elmovectorizer{i}" for i in range(64)]


def test_misuse(model):
    for method in ("fit", "transform"):
        with pytest.raises(ConfigError, match=r"found one string 'a text'; pass \[text\]"):
            getattr(ElmoVectorizer(model), method)("a text")
    with pytest.raises(ConfigError, match="pooling must be one of"):
        ElmoVectorizer(model, pooling="sum").fit(TEXTS)
    with pytest.raises(ConfigError, match="expected a string or a list of tokens, found float nan"):
        ElmoVectorizer(model).transform(["a", float("nan")])
    with pytest.raises(ModelFileError, match="no such file or folder"):
        ElmoVectorizer("no/such/model").fit(TEXTS)


def test_a_pickle_holds_the_path_alone(model):
    vectorizer = ElmoVectorizer(model, pooling="max").fit(TEXTS)
    pickled = pickle.dumps(make_pipeline(vectorizer))
    assert len(pickled) < 1000
    np.testing.assert_array_equal(pickle.loads(pickled).transform(TEXTS), vectorizer.transform(TEXTS))
    assert clone(vectorizer).get_params() == vectorizer.get_params()


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_grid_search(model, n_jobs):
    """Also by threads of joblib, which share one model."""
    texts = ["cat cat", "the cat", "cat sat", "bank river", "the bank", "bank bank"] * 2
    labels = [0, 0, 0, 1, 1, 1] * 2
    pipeline = make_pipeline(ElmoVectorizer(model), LogisticRegression(C=100))
    grid = {"elmovectorizer__pooling": ["mean", "max"], "elmovectorizer__layer_weights": [None, [1, 0, 0]]}
    with joblib.parallel_backend("threading"):
        search = GridSearchCV(pipeline, grid, cv=2, n_jobs=n_jobs, error_score="raise").fit(texts, labels)
    assert search.best_score_ == 1
    assert search.predict(["the cat", "bank bank"]).tolist() == [0, 1]


class OfNumbers(ElmoVectorizer):
    """Reads a row of numbers as a text, so that scikit-learn's checks, which know numbers alone, can run."""

    def __init__(
        self, model="en", *, pooling="mean", layer_weights=None, tokenizer=None, precision="float32"
    ):
        super().__init__(
            model, pooling=pooling, layer_weights=layer_weights, tokenizer=tokenizer, precision=precision
        )

    def fit(self, X, y=None):
        return super().fit(self._texts(X, reset=True))

    def transform(self, X):
        return super().transform(self._texts(X, reset=False))

    def _texts(self, X, *, reset):
        return [" ".join(map(str, row)) for row in validate_data(self, X, reset=reset)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags


# "en" stands for the tiny model: the checks are collected before any fixture runs.
@parametrize_with_checks([OfNumbers()])
def test_scikit_learns_own_checks(estimator, check, monkeypatch, model):
    monkeypatch.setattr(
        "elmokit.integrations.sklearn.load_elmo", lambda _, **settings: elmokit.load(model, **settings)
    )
    check(estimator)


@pytest.mark.filterwarnings("ignore:Can't test estimator")
def test_checks_of_text_estimators(model):
    assert [result["status"] for result in check_estimator(ElmoVectorizer(model))] == ["passed"]
