"""What can go wrong when a model is written: a folder appears whole or not at all."""

import errno
import os
import resource
from contextlib import contextmanager

import pytest
import torch

from elmokit import ConfigError, DataError, ModelFileError
from elmokit.formats import load_model, native, save_model
from tests.tiny import tiny_bundle, tiny_config, tiny_model

FORMATS = ["native", "hdf5"]


@contextmanager
def file_size_limit(size):
    """As if the disk were full: no file may grow beyond `size`."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("size", [0, 1000, 5000])
def test_a_full_disk_leaves_nothing_behind(tmp_path, format, size):
    with (
        file_size_limit(size),
        pytest.raises(DataError, match=r"cannot write .*model: .*(free some space|choose a place)"),
    ):
        save_model(tiny_bundle(softmax=True), tmp_path / "model", format=format)
    assert not list(tmp_path.iterdir())


def test_no_space_left_is_said(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(native, "file_sha256", full)
    with pytest.raises(DataError, match=r"cannot write .*model: No space left on device; free some space"):
        save_model(tiny_bundle(), tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("format", FORMATS)
def test_an_interrupted_save_leaves_nothing_behind(tmp_path, format, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(torch.Tensor, "cpu", interrupt)
    monkeypatch.setattr(torch.Tensor, "detach", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save_model(tiny_bundle(), tmp_path / "model", format=format)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("format", FORMATS)
def test_targets_that_cannot_be(tmp_path, format):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    for target in (tmp_path / "full", tmp_path / "full" / "file"):
        with pytest.raises(DataError, match=r"exists already; choose another name or remove it first"):
            save_model(tiny_bundle(), target, format=format)
    with pytest.raises(DataError, match=r"cannot write .*; choose a place you may write to"):
        save_model(tiny_bundle(), tmp_path / "full" / "file" / "model", format=format)
    with pytest.raises(DataError, match=r"cannot write .*; choose a place you may write to"):
        save_model(tiny_bundle(), "/proc/elmokit/model", format=format)
    assert (tmp_path / "full" / "file").read_text() == "mine"
    assert [path.name for path in tmp_path.rglob("*")] == ["full", "file"]


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written(tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    with pytest.raises(DataError, match=r"Permission denied"):
        save_model(tiny_bundle(), tmp_path / "locked" / "model")


def test_formats_and_types_that_are_not(tmp_path):
    with pytest.raises(ConfigError, match=r"^format must be one of native, hdf5, found 'onnx'"):
        save_model(tiny_bundle(), tmp_path / "model", format="onnx")
    with pytest.raises(ConfigError, match=r"^dtype must be one of float32, float16, int8, found 'int4'"):
        save_model(tiny_bundle(), tmp_path / "model", dtype="int4")
    with pytest.raises(ConfigError, match=r"^HDF5 stores float32 only"):
        save_model(tiny_bundle(), tmp_path / "model", format="hdf5", dtype="float16")
    assert not list(tmp_path.iterdir())


def test_numbers_that_float16_cannot_hold(tmp_path):
    model = tiny_model()
    with torch.no_grad():
        model.layers[0].bias[0, 0] = 70_000.0
    with pytest.raises(ModelFileError, match=r"^layers.0.bias has numbers that float16 cannot hold"):
        save_model(tiny_bundle(model), tmp_path / "model", dtype="float16")
    assert not list(tmp_path.iterdir())
    save_model(tiny_bundle(model), tmp_path / "model")
    assert load_model(tmp_path / "model").model.layers[0].bias[0, 0] == 70_000


def test_hdf5_has_no_place_for_another_forget_bias(tmp_path):
    bundle = tiny_bundle(tiny_model(tiny_config(forget_bias=0.0)))
    with pytest.raises(ModelFileError, match=r"the model's forget_bias is 0.0; save it in the native format"):
        save_model(bundle, tmp_path / "model", format="hdf5")
    save_model(bundle, tmp_path / "model")
    assert load_model(tmp_path / "model").model.config.forget_bias == 0.0


def test_folders_may_be_entered_by_others(tmp_path):
    """Temporary folders are closed to others, models should not be."""
    save_model(tiny_bundle(), tmp_path / "model")
    assert (tmp_path / "model").stat().st_mode & 0o055 == 0o055


def test_others_may_read_a_saved_model(tmp_path):
    save_model(tiny_bundle(), tmp_path / "model")
    assert all(file.stat().st_mode & 0o044 for file in (tmp_path / "model").iterdir())


def test_a_folder_is_not_named_like_a_file(tmp_path):
    with pytest.raises(ConfigError, match=r"model\.h5 looks like a file; a model is a folder"):
        save_model(tiny_bundle(), tmp_path / "model.h5", format="hdf5")
    assert list(tmp_path.iterdir()) == []
