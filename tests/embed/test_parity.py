"""The same numbers as the original systems: every shape of model against the oracle, and the fixtures."""

import json

import h5py
import numpy as np
import pytest

import elmokit
from tests.reference import Reference
from tests.tiny import WORDS, tiny_arrays, tiny_config, tiny_options, write_folder

SHAPES = {
    "as published": {},
    "one layer": {"num_layers": 1},
    "three layers": {"num_layers": 3},
    "three layers without skips": {"num_layers": 3, "skip_connections": False},
    "tanh": {"activation": "tanh"},
    "no highway": {"num_highway": 0},
    "two highways": {"num_highway": 2},
    "tight clips": {"cell_clip": 0.3, "projection_clip": 0.2},
    "no clips": {"cell_clip": None, "projection_clip": None},
    "no state projection": {"cell_dim": 3, "projection": False, "projection_clip": 0.01},
    "no character projection": {"char_projection": False, "projection_dim": 9},
    "short tokens": {"max_characters": 7},
    "long tokens": {"max_characters": 80},
    "one filter as wide as a token": {"filters": ((6, 4),), "max_characters": 6},
    "words": {"words": len(WORDS)},
}
ODD_TEXT = [
    ["the", "cat", "sat"],
    [],
    ["the"],
    ["x" * 200, "né" * 30, "", "中文", "👩‍👩‍👧", "\ud800", "a\u200bb", "\u200b", "\0", "Z"],
    ["<S>", "</S>", "<s>", "<UNK>", "bank", "bank"],
    ["the", "cat", "sat", "the", "cat", "sat", "the"],
]


@pytest.fixture(params=SHAPES.values(), ids=SHAPES.keys())
def model(request, tmp_path):
    """A model read from files and the oracle of the same numbers."""
    config = tiny_config(**request.param)
    arrays, options = tiny_arrays(config, scale=0.6), tiny_options(config)
    words = WORDS if "words" in request.param else None
    folder = write_folder(tmp_path, config, arrays=arrays, vocabulary=words)
    return folder, Reference(arrays, options, WORDS)


def assert_same(sentence, expected):
    """All layers of all tokens, and those of the boundaries."""
    np.testing.assert_allclose(sentence.layers, expected[:, 1:-1], atol=1e-5, rtol=0)
    np.testing.assert_allclose(sentence.boundaries, expected[:, [0, -1]], atol=1e-5, rtol=0)


def test_every_shape_gives_the_oracles_layers(model):
    folder, oracle = model
    for tokens, sentence in zip(ODD_TEXT, elmokit.load(folder).embed(ODD_TEXT), strict=True):
        assert_same(sentence, oracle.embed(tokens))


def test_every_shape_carries_its_state_as_the_oracle_does(model):
    folder, oracle = model
    elmo = elmokit.load(folder, stateful=True)
    states = {}
    for call in (ODD_TEXT[:2], ODD_TEXT[2:5], ODD_TEXT[5:], ODD_TEXT[:3]):  # rows come, go and come again
        for row, (tokens, sentence) in enumerate(zip(call, elmo.embed(call), strict=True)):
            assert_same(sentence, oracle.embed(tokens, states.setdefault(row, {})))


@pytest.mark.parametrize(("limit", "name"), [(0.3, "cell_clip"), (0.2, "projection_clip")])
def test_the_tight_clips_of_these_tests_change_the_numbers(limit, name, tmp_path):
    layers = []
    for clip in (None, limit):
        config = tiny_config(**{"cell_clip": None, "projection_clip": None, name: clip})
        arrays = tiny_arrays(config, scale=0.6)
        folder = write_folder(tmp_path / str(clip), config, arrays=arrays)
        layers.append(elmokit.load(folder).embed("the cat sat").layers)
    assert abs(layers[0] - layers[1]).max() > 0.1


@pytest.mark.parametrize("folder", ["allennlp-elmo", "bilm-tf/model"])
def test_published_embeddings(published, folder):
    """Ten batches of three rows, each row with its own state from batch to batch (fixtures/README.md)."""
    folder = published / folder
    sentences = json.loads(next(folder.glob("*sentences.json")).read_text(encoding="utf-8"))
    elmo = elmokit.load(folder / "options.json", folder / "lm_weights.hdf5", stateful=True)
    worst = 0.0
    for batch in range(10):
        for row, sentence in enumerate(elmo.embed([rows[batch].split() for rows in sentences])):
            with h5py.File(folder / f"lm_embeddings_{row}.hdf5") as file:
                expected = np.concatenate(file[str(batch)][...], axis=-1)
            assert sentence.layers[-1].shape == expected.shape
            worst = max(worst, abs(sentence.layers[-1] - expected).max())
    assert worst < 2e-6


def test_published_token_vectors(published):
    folder = published / "allennlp-elmo"
    words = (folder / "vocab_test.txt").read_text(encoding="utf-8").split("\n")
    with h5py.File(folder / "elmo_token_embeddings.hdf5") as file:
        expected = file["embedding"][...]
    assert len(words) == len(expected) == 458
    sentence = elmokit.load(folder, folder / "lm_weights.hdf5").embed([words])[0]
    np.testing.assert_allclose(sentence.layers[0], np.tile(expected, 2), atol=2e-6, rtol=0)
