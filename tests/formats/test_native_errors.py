"""Everything that can be wrong with a native folder, each with the message that says so."""

import json
import re

import pytest
import torch
from safetensors.torch import load_file, save_file

from elmokit import ConfigError, ModelFileError
from elmokit.formats import load_model, save_model
from tests.tiny import tiny_bundle


def refuses(message, folder, error=ModelFileError):
    with pytest.raises(error) as caught:
        load_model(folder)
    for part in (message,) if isinstance(message, str) else message:
        assert part in str(caught.value)


def cut(path, share):
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])


@pytest.fixture
def native(tmp_path):
    save_model(tiny_bundle(vocabulary=True, softmax=True), tmp_path / "native")
    return tmp_path / "native"


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.99])
def test_truncated_safetensors(native, share):
    cut(native / "model.safetensors", share)
    refuses("model.safetensors: cannot be read as safetensors: it is ", native)


def test_truncated_softmax(native):
    cut(native / "softmax.safetensors", 0.5)
    refuses("softmax.safetensors: is not a softmax", native)


def test_missing_native_weights(native):
    (native / "model.safetensors").unlink()
    refuses("model.safetensors: cannot be read as safetensors: it is missing", native)


def test_native_weights_that_do_not_fit(native):
    tensors = load_file(native / "model.safetensors")
    del tensors["encoder.projection.bias"]
    tensors["layers.0.bias"] = torch.zeros(2, 24)
    tensors["surplus"] = torch.zeros(1)
    save_file(tensors, native / "model.safetensors")
    parts = [
        "weights and config.json do not fit: encoder.projection.bias is missing, expected [3]",
        "layers.0.bias is [2, 24], expected [2, 20]",
        "surplus is [1], expected none",
        "use the files that were saved together",
    ]
    refuses(parts, native)


def test_a_softmax_that_does_not_fit(native):
    save_file({"weight": torch.zeros(10, 4), "bias": torch.zeros(10)}, native / "softmax.safetensors")
    refuses("softmax.safetensors: weights and config.json do not fit: weight is [10, 4]", native)
    save_file({"weights": torch.zeros(10, 4)}, native / "softmax.safetensors")
    refuses("softmax.safetensors: is not a softmax", native)


@pytest.mark.parametrize(
    ("change", "message", "error"),
    [
        ({"format_version": 2}, "format_version is 2, this elmokit reads 1; update elmokit", ModelFileError),
        ({"format_version": None}, "format_version is None, this elmokit reads 1", ModelFileError),
        ({"modle": {}}, "config.json: unknown setting 'modle'; did you mean 'model'?", ConfigError),
        ({"model": [1]}, "config.json: 'model' must be an object with settings, found [1]", ConfigError),
        ({"model": {}}, "the model's 'encoder' must be an object with its sizes, found None", ConfigError),
        (
            {"tokenizer": "rules"},
            "config.json: 'tokenizer' must be an object with settings, found 'rules'",
            ConfigError,
        ),
        (
            {"tokenizer": {"name": "rulse"}},
            ("tokenizer must be one of rules", "found 'rulse'; did you mean 'rules'?"),
            ConfigError,
        ),
    ],
)
def test_native_configs_that_cannot_be(native, change, message, error):
    config = native / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | change))
    refuses(message, native, error=error)


def test_native_sizes_that_are_huge(native):
    config = json.loads((native / "config.json").read_text())
    config["model"] |= {"cell_dim": 10_000_000, "num_layers": 100}
    (native / "config.json").write_text(json.dumps(config))
    refuses(
        ["weights and config.json do not fit: ", "layers.0.bias is [2, 20], expected [2, 40000000]"], native
    )


def test_messages_name_the_file(native):
    cut(native / "model.safetensors", 0.5)
    with pytest.raises(ModelFileError, match=f"^{re.escape(str(native / 'model.safetensors'))}: "):
        load_model(native)
