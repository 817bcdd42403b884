"""Sentence vectors that were fitted on text."""

from dataclasses import replace

import numpy as np
import pytest

import elmokit
from elmokit import ConfigError, DataError, ModelFileError
from elmokit.embed import Embedder
from elmokit.formats import load_model, save_model
from elmokit.model import fit_statistics
from tests.small_runs import sentences
from tests.tiny import tiny_bundle


@pytest.fixture(scope="module")
def text():
    return [f"{line} {number % 7}" for number, line in enumerate(sentences(1200))]


@pytest.fixture(scope="module")
def elmo(text):
    embedder = Embedder(tiny_bundle())
    fitted = elmokit.fit_pooling(embedder, text, tokens=True, num_axes=3, layer_weights=[1, 0.5, 0])
    return Embedder(replace(embedder.bundle, pooling=fitted))


def test_weights_of_words_by_hand():
    bundle = tiny_bundle()
    lines = ["a b"] * 900 + ["a c"] * 100
    fitted = elmokit.fit_pooling(Embedder(bundle), lines, tokens=True, smoothing=0.5)
    weights = dict(zip(fitted.words, fitted.weights.tolist(), strict=True))
    assert weights == pytest.approx({"a": 0.5, "b": 0.5 / 0.95, "c": 0.5 / 0.55})
    assert fitted.token_weights(["A", "new"]).tolist() == [0.5, 1]


def test_whitened_text_has_independent_numbers_of_variance_1():
    means = np.random.default_rng(0).standard_normal((5000, 1, 4)).astype(np.float32)
    means = means @ np.diag([5, 2, 1, 0.1]).astype(np.float32) + 3
    fitted = fit_statistics([], np.zeros(0, np.float32), means, layer_weights=[1], num_axes=3)
    found = (means[:, 0] - fitted.means[0]) @ fitted.axes[0]
    assert np.allclose(np.cov(found.T), np.eye(3), atol=1e-3)
    assert np.allclose(found.mean(axis=0), 0, atol=1e-3)


def test_default_of_encode(elmo):
    texts = ["the cat sat", "né cat", ""]
    default = elmo.encode(texts)
    assert default.shape == (3, 6)
    assert np.array_equal(default, elmo.encode(texts, pooling="whitened"))
    assert np.linalg.norm(default[:2], axis=1) == pytest.approx(1)
    assert not default[2].any()
    assert np.allclose(elmo.encode(texts[0]), default[0], atol=1e-5)
    assert elmo.encode(texts, layers="top").shape == (3, elmo.dim)
    assert Embedder(replace(elmo.bundle, pooling=None)).encode(texts).shape == (3, elmo.dim)
    assert elmo.encode([]).shape == (0, 6)


def test_fewer_numbers_are_the_most_important_ones(elmo):
    found = elmo.encode(["the cat sat", "né cat", ""], dim=3)
    first = elmo.encode(["the cat sat", "né cat"])[:, :3]
    assert np.allclose(found[:2], first / np.linalg.norm(first, axis=1, keepdims=True), atol=1e-6)
    assert found.shape == (3, 3)
    assert not found[2].any()
    for dim, problem in ((0, "from 1 to 6, found 0"), (7, "from 1 to 6, found 7")):
        with pytest.raises(ConfigError, match=problem):
            elmo.encode(["a"], dim=dim)
    with pytest.raises(ConfigError, match="dim=3 needs pooling=\"whitened\", found 'mean'"):
        elmo.encode(["a"], pooling="mean", dim=3)


def test_sif_has_no_common_direction(elmo):
    found = elmo.encode(["the cat sat", "né cat"], pooling="sif")
    assert found.shape == (2, elmo.dim)
    assert np.abs(found @ elmo.pooling.common).max() < 1e-5


def test_similarity(elmo):
    found = elmo.similarity(["the cat sat", "né cat"], ["the cat sat"])
    assert found.shape == (2, 1)
    assert found[0, 0] == pytest.approx(1)


def test_embed_file_writes_them(elmo, tmp_path):
    texts = ["the cat sat", "", "né cat"]
    for name, how in (("a.npy", {}), ("b.npz", {"pooling": "whitened"})):
        elmokit.embed_file(elmo, texts, tmp_path / name, **how)
        with elmokit.read_vectors(tmp_path / name) as stored:
            assert np.allclose([one.vectors for one in stored], elmo.encode(texts), atol=1e-6)


def test_they_are_stored_with_the_model(elmo, tmp_path):
    save_model(tiny_bundle(), tmp_path / "model")
    plain = elmokit.load(tmp_path / "model")
    elmokit.store_pooling(plain, elmo.pooling, tmp_path / "model")
    again = elmokit.load(tmp_path / "model")
    assert np.allclose(again.encode(["the cat"]), elmo.encode(["the cat"]), atol=0.01)
    save_model(again.bundle, tmp_path / "copy")
    assert np.array_equal(elmokit.load(tmp_path / "copy").encode(["the cat"]), again.encode(["the cat"]))
    (tmp_path / "model" / "pooling.safetensors").write_bytes(b"nonsense")
    with pytest.raises(ModelFileError, match=r"pooling\.safetensors: cannot be read as statistics"):
        load_model(tmp_path / "model")


def test_messages(elmo, tmp_path):
    plain = Embedder(tiny_bundle())
    with pytest.raises(ConfigError, match="pooling='sif' needs statistics, which this model does not have"):
        plain.encode(["a"], pooling="sif")
    with pytest.raises(ConfigError, match="has layers of its own"):
        elmo.encode(["a"], pooling="whitened", layers="top")
    with pytest.raises(ConfigError, match="pooling must be one of mean, max, ends, sif, whitened"):
        elmo.encode(["a"], pooling="white")
    with pytest.raises(DataError, match="the text has 2 sentences, expected at least 1,000"):
        elmokit.fit_pooling(plain, ["a", "b"])
    with pytest.raises(ConfigError, match="expected 3 weights of layers, found"):
        elmokit.fit_pooling(plain, ["a"] * 2000, layer_weights=[1])
    save_model(tiny_bundle(), tmp_path / "old", format="hdf5")
    with pytest.raises(ConfigError, match="is not in elmokit's own format"):
        elmokit.store_pooling(plain, elmo.pooling, tmp_path / "old")
    with pytest.raises(ConfigError, match="en comes with elmokit and stays as it is"):
        elmokit.fit_pooling(plain, ["a"] * 2000, folder="en")
