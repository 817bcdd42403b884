"""The files of the output layer."""

import logging

import pytest
import torch
from safetensors.torch import load_file, save_file

from elmokit import ConfigError, ModelFileError
from elmokit.formats import ModelBundle, SoftmaxFile, load_model, save_model
from tests.tiny import WORDS, forget_digests, random_hidden, random_softmax, tiny_bundle, tiny_model

CUTOFFS = (4, 7)


@pytest.fixture
def adaptive():
    softmax = random_softmax(len(WORDS), cutoffs=CUTOFFS)
    parts = tiny_bundle(vocabulary=True)
    return softmax, ModelBundle(
        model=tiny_model(),
        tokenizer=parts.tokenizer,
        vocabulary=parts.vocabulary,
        softmax=SoftmaxFile(len(WORDS), lambda: softmax),
    )


def test_an_adaptive_softmax_is_read_as_it_was_written(adaptive, tmp_path):
    softmax, model = adaptive
    save_model(model, tmp_path / "one")
    save_model(load_model(tmp_path / "one"), tmp_path / "two")
    for folder in ("one", "two"):
        found = load_model(tmp_path / folder).softmax.read()
        assert found.cutoffs == CUTOFFS
        assert found.tensors().keys() == softmax.tensors().keys()
        for name, tensor in softmax.tensors().items():
            assert torch.equal(found.tensors()[name], tensor), name


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_an_adaptive_softmax_in_fewer_bits(adaptive, tmp_path, dtype):
    softmax, model = adaptive
    save_model(model, tmp_path / "model", dtype=dtype)
    found = load_model(tmp_path / "model").softmax.read()
    assert found.cutoffs == CUTOFFS
    hidden = random_hidden(5)
    torch.testing.assert_close(
        found.log_probabilities(hidden), softmax.log_probabilities(hidden), atol=0.05, rtol=0
    )


def test_a_softmax_in_fewer_bits_than_the_network(adaptive, tmp_path):
    softmax, model = adaptive
    save_model(model, tmp_path / "model", dtype="float16", softmax_dtype="int8")
    types = {
        name: {tensor.dtype for tensor in load_file(tmp_path / "model" / name).values()}
        for name in ("model.safetensors", "softmax.safetensors")
    }
    assert types == {
        "model.safetensors": {torch.float16},
        "softmax.safetensors": {torch.int8, torch.float32},
    }
    found = load_model(tmp_path / "model").softmax.read()
    torch.testing.assert_close(found.weight, softmax.weight, atol=0.02, rtol=0)
    with pytest.raises(ConfigError, match=r"^HDF5 stores float32 only.* to store int8$"):
        save_model(model, tmp_path / "other", format="hdf5", softmax_dtype="int8")


def test_hdf5_has_no_place_for_it_and_says_so(adaptive, tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        save_model(adaptive[1], tmp_path / "model", format="hdf5")
    assert "HDF5 has no place for an adaptive softmax" in caplog.text
    assert load_model(tmp_path / "model").softmax is None


@pytest.mark.parametrize(
    ("cutoffs", "message"),
    [
        (None, "cluster_bias is [2], expected none"),
        ("4", "cluster_bias is [2], expected [1]"),
        ("4,x", "is not a softmax (invalid literal for int"),
        ("7,4", "the cutoffs of the softmax are [7, 4]; expected rising numbers"),
    ],
)
def test_cutoffs_that_do_not_fit(adaptive, tmp_path, cutoffs, message):
    save_model(adaptive[1], tmp_path / "model")
    path = tmp_path / "model" / "softmax.safetensors"
    save_file(load_file(path), path, metadata=None if cutoffs is None else {"cutoffs": cutoffs})
    forget_digests(tmp_path / "model")
    with pytest.raises(ModelFileError) as caught:
        load_model(tmp_path / "model").softmax.read()
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)
