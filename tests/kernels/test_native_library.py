"""Which engine is used, and what happens without one."""

import logging

import pytest
import torch

from elmokit.errors import ConfigError
from elmokit.kernels import engine_name, make_inference_lstm
from elmokit.kernels.lstm_inference import InferenceLSTM
from elmokit.kernels.native import NativeLSTM, engines, find_engine, library
from tests.kernels.native import ENGINES, make_layers, make_shape

needs_library = pytest.mark.skipif(not ENGINES, reason="no native kernel on this machine")


@pytest.fixture
def other_library(monkeypatch):
    """Replace the library by another file."""

    def replace(path):
        monkeypatch.setattr(library, "LIBRARY", path)
        library.native_library.cache_clear()
        library._engine_names.cache_clear()

    yield replace
    monkeypatch.undo()
    library.native_library.cache_clear()
    library._engine_names.cache_clear()


@needs_library
def test_the_best_engine_is_used_unless_another_is_named(monkeypatch):
    monkeypatch.delenv("ELMOKIT_KERNEL", raising=False)
    assert find_engine("float32") == engines("float32")[-1]
    assert engine_name("int8") == engines("int8")[-1].name
    for engine in ENGINES:
        monkeypatch.setenv("ELMOKIT_KERNEL", engine.name)
        assert find_engine(engine.precision) == engine
    monkeypatch.setenv("ELMOKIT_KERNEL", "torch")
    assert find_engine("float32") is None
    assert engine_name("float32") == "torch"
    monkeypatch.setenv("ELMOKIT_KERNEL", "sse9")
    with pytest.raises(ConfigError, match=r"ELMOKIT_KERNEL must be one of torch, .*, found 'sse9'"):
        find_engine("float32")


@needs_library
def test_an_engine_without_a_precision_leaves_it_to_torch(monkeypatch):
    monkeypatch.setenv("ELMOKIT_KERNEL", ENGINES[0].name)
    assert ENGINES[0].name == "avx2"
    assert find_engine("bfloat16") is None


@needs_library
def test_what_the_kernel_does_not_take_is_left_to_torch(monkeypatch):
    monkeypatch.delenv("ELMOKIT_KERNEL", raising=False)
    shape, layers = make_shape(8), make_layers(8, 8)
    assert isinstance(make_inference_lstm(layers, shape, "float32"), NativeLSTM)
    doubled = [[one.apply(torch.Tensor.double) for one in both] for both in layers]
    assert isinstance(make_inference_lstm(doubled, shape, "float32"), InferenceLSTM)
    assert isinstance(make_inference_lstm([], shape, "float32"), InferenceLSTM)


def test_without_a_library_torch_is_used(other_library, tmp_path, caplog):
    other_library(tmp_path / "missing.so")
    assert engines("float32") == []
    assert engine_name("int8") == "torch"
    assert caplog.records == []


def test_a_library_that_cannot_be_loaded_is_a_warning(other_library, tmp_path, caplog):
    path = tmp_path / "broken.so"
    path.write_bytes(b"not a library")
    other_library(path)
    with caplog.at_level(logging.WARNING):
        assert engine_name("int8") == engine_name("float32") == "torch"
    (record,) = caplog.records
    assert "native kernel cannot be loaded, torch is used instead: " in record.getMessage()
    assert "broken.so" in record.getMessage()


@needs_library
@pytest.mark.parametrize("share", [0.0, 0.0001, 0.01, 0.5, 0.999])
def test_a_library_that_is_cut_short_is_a_warning(other_library, tmp_path, caplog, share):
    content = library.LIBRARY.read_bytes()
    path = tmp_path / "cut.so"
    path.write_bytes(content[: int(share * len(content))])
    other_library(path)
    assert engine_name("int8") == "torch"
    assert "native kernel cannot be loaded" in caplog.text


@needs_library
def test_a_library_of_another_version_is_a_warning(other_library, monkeypatch, caplog):
    monkeypatch.setattr(library, "_VERSION", 99)
    other_library(library.LIBRARY)
    assert engines("float32") == []
    assert "it has version 3 of the interface, expected 99" in caplog.text
