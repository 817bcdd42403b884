"""ELMoForManyLangs' `Embedder`."""

import numpy as np
import pytest

from elmokit import ConfigError
from elmokit.compat.many_langs import Embedder
from tests.many_langs import NETWORK, ManyLangsReference, random_states, write_folder

SENTENCES = [["the", "cat", "sat"], ["bank"], [], ["sat", "the", "cat", "."]]


@pytest.fixture
def embedder(tmp_path):
    return Embedder(str(write_folder(tmp_path)), batch_size=2)


@pytest.mark.parametrize("output_layer", [-2, -1, 0, 1, 2])
def test_each_layer(embedder, output_layer):
    oracle = ManyLangsReference(NETWORK, random_states(NETWORK))
    for tokens, vectors in zip(SENTENCES, embedder.sents2elmo(SENTENCES, output_layer), strict=True):
        layers = oracle.embed(tokens)[:, 1:-1]
        expected = {-2: layers, -1: layers.mean(axis=0)}.get(output_layer, layers[output_layer])
        assert vectors.shape == expected.shape
        np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_two_calls_agree(embedder):
    first, second = embedder.sents2elmo(SENTENCES), embedder.sents2elmo(SENTENCES[::-1])[::-1]
    for a, b in zip(first, second, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)
    for a, b in zip(first, embedder.sents2elmo(iter(SENTENCES)), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_misuse(embedder):
    assert embedder.sents2elmo([]) == []
    with pytest.raises(ConfigError, match="output_layer is 3; it takes -2"):
        embedder.sents2elmo(SENTENCES, 3)
    for wrong in ("the cat", ["the cat"]):
        with pytest.raises(ConfigError, match="bare string 'the cat'"):
            embedder.sents2elmo(wrong)
