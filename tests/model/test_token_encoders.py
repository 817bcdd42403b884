"""What every token encoder promises, whatever its kind."""

import pickle

import pytest
import torch

from elmokit.model import CharCNNConfig, LexiconConfig, WordConfig, encode_distinct
from elmokit.text import Lexicon, Vocabulary

MARKS = ("<bos>", "<eos>", "<oov>", "<pad>", "<bow>", "<eow>")
LEXICON = Lexicon({symbol: row for row, symbol in enumerate((*"abc", *MARKS))}, {"<oov>": 0, "cab": 1})
VOCABULARY = Vocabulary(["<S>", "</S>", "<UNK>", "cab"])
SPELLING = CharCNNConfig(filters=((1, 3), (2, 4)), embedding_dim=5, max_characters=8, num_highway=1)
CONFIGS = {
    "bytes": SPELLING,
    "characters": LexiconConfig(
        characters=CharCNNConfig(
            filters=((1, 3), (2, 4)), embedding_dim=5, max_characters=8, num_characters=9, projection=False
        ),
        num_words=2,
        word_dim=3,
    ),
    "words": WordConfig(num_words=4),
}
every = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())


@every
def test_it_makes_its_own_inputs_and_the_frozen_one_agrees(config):
    encoder = config.build(6)
    inputs = pickle.loads(pickle.dumps(config.inputs(VOCABULARY, LEXICON)))
    types = [*config.boundaries, "cab", "unknown", "c" * 20, ""]
    with torch.inference_mode():
        vectors = encoder(*inputs(types))
        assert vectors.shape == (6, 6)
        torch.testing.assert_close(encoder.frozen("float32")(*inputs(types)), vectors, atol=1e-6, rtol=0)


@every
def test_it_says_what_it_reads_and_what_it_truncates(config):
    assert CONFIGS[config.reads] is config
    assert config.truncated(["cab", "c" * 6, "c" * 7]) == ([] if config.reads == "words" else [2])
    assert config.max_characters == (None if config.reads == "words" else 8)
    assert config.vocabulary_size == (4 if config.reads == "words" else None)
    assert config.describe()


def test_only_bytes_are_counted_as_bytes():
    assert CONFIGS["bytes"].truncated(["é" * 4]) == [0]
    assert CONFIGS["characters"].truncated(["é" * 4]) == []


@every
def test_files_that_fit_and_files_that_do_not(config):
    assert config.misfit(VOCABULARY, LEXICON) is None
    problem = config.misfit(None, None)
    assert (problem is None) == (config.reads == "bytes")


@every
def test_initial_weights_come_from_the_generator(config):
    def drawn():
        encoder = config.build(6)
        encoder.reset_parameters(torch.Generator().manual_seed(1))
        return torch.cat([parameter.flatten() for parameter in encoder.parameters()])

    assert torch.equal(drawn(), drawn())


def test_each_distinct_token_is_encoded_once():
    seen = []

    def encode(types):
        seen.append(types)
        return torch.arange(float(len(types)))[:, None]

    assert encode_distinct(["b", "a", "b", "b"], encode)[:, 0].tolist() == [0, 1, 0, 0]
    assert seen == [["b", "a"]]
    assert encode_distinct([], lambda types: torch.empty(0, 3)).shape == (0, 3)
