"""Configurations check themselves, and their messages say what to do."""

import json
import re

import pytest

from elmokit.errors import ConfigError
from elmokit.model import BiLMConfig, CharCNNConfig, WordConfig
from tests.tiny import tiny_config


@pytest.mark.parametrize("config", [tiny_config(), tiny_config(words=7), tiny_config(cell_clip=None)])
def test_json_gives_the_config_back(config):
    assert BiLMConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_sizes():
    config = tiny_config()
    assert (config.output_dim, config.encoder.num_filters) == (6, 9)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cell_dim": 0}, "cell_dim must be a whole number from 1 to 10000000, found 0"),
        ({"cell_dim": 2.5}, "cell_dim must be a whole number from 1 to 10000000, found 2.5"),
        ({"cell_dim": True}, "cell_dim must be a whole number from 1 to 10000000, found True"),
        ({"projection_dim": 10**12}, "projection_dim must be a whole number from 1 to 10000000, found 10000"),
        ({"num_layers": "2"}, "num_layers must be a whole number from 1 to 100, found '2'"),
        (
            {"cell_clip": -1.0},
            "cell_clip must be a finite number above 0 and at most 1000000000.0",
        ),
        (
            {"projection_clip": "3"},
            "projection_clip must be a finite number above 0 and at most 1000000000.0",
        ),
        (
            {"projection_clip": float("nan")},
            "projection_clip must be a finite number above 0 and at most 1000000000.0",
        ),
        (
            {"cell_clip": True},
            "cell_clip must be a finite number above 0 and at most 1000000000.0",
        ),
        ({"skip_connections": "no"}, "skip_connections must be true or false, found 'no'"),
        ({"projection": 1}, "projection must be true or false, found 1"),
        (
            {"forget_bias": "1"},
            "forget_bias must be a finite number from -1000000000.0 to 1000000000.0",
        ),
        (
            {"forget_bias": float("inf")},
            "forget_bias must be a finite number from -1000000000.0 to 1000000000.0",
        ),
        ({"projection": False}, "without a projection the cell (5) and the output (3) must be of one size"),
        ({"char_projection": False}, "without a projection the 9 filters must equal projection_dim (3)"),
        ({"char_projection": None}, "projection must be true or false, found None"),
        ({"activation": "gelu"}, "activation must be one of relu, tanh, found 'gelu'"),
        ({"activation": ["relu"]}, "activation must be one of relu, tanh, found ['relu']"),
        ({"filters": []}, "filters must be a list of [width, number] pairs, found []"),
        ({"filters": [[1, 2, 3]]}, "filters must be a list of [width, number] pairs, found [1, 2, 3] in it"),
        ({"filters": [[1, 0]]}, "a filter's number must be a whole number from 1"),
        ({"filters": [["1", 4]]}, "a filter's width must be a whole number from 1"),
        ({"max_characters": 2}, "max_characters must be a whole number from 3"),
        ({"max_characters": 3, "filters": [[4, 2]]}, "a filter is 4 characters wide, but a token has only 3"),
        ({"num_highway": -1}, "num_highway must be a whole number from 0"),
        ({"embedding_dim": None}, "embedding_dim must be a whole number from 1"),
        ({"words": 0}, "num_words must be a whole number from 1"),
    ],
)
def test_what_cannot_be(changes, message):
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}"):
        tiny_config(**changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cel_dim": 5}, "model: unknown setting 'cel_dim'; did you mean 'cell_dim'?"),
        ({"xyz": 5}, "model: unknown setting 'xyz'; known are encoder, cell_dim, "),
        (
            {"encoder": {"num_words": 5, "activation": "relu"}},
            "encoder: unknown setting 'activation'; known are",
        ),
        ({"encoder": 3}, "the model's 'encoder' must be an object with its sizes, found 3"),
        ({"encoder": {}}, "encoder: "),
    ],
)
def test_what_a_file_may_get_wrong(change, message):
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}"):
        BiLMConfig.from_dict(tiny_config().to_dict() | change)


def test_what_is_no_object_is_refused():
    with pytest.raises(ConfigError, match=r"^the model's 'encoder' must be an object"):
        BiLMConfig.from_dict([])


def test_a_missing_setting_is_named():
    data = tiny_config().to_dict()
    del data["cell_dim"]
    with pytest.raises(ConfigError, match=r"^model: .*'cell_dim'; it has \["):
        BiLMConfig.from_dict(data)


def test_kinds_of_encoder():
    assert isinstance(tiny_config().encoder, CharCNNConfig)
    assert isinstance(tiny_config(words=3).encoder, WordConfig)
