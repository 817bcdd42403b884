import numpy as np
import pytest

from elmokit import DataError, Embedder, ModelFileError
from elmokit.formats import load_model
from elmokit.integrations.storage import from_files, store, to_files
from tests.tiny import tiny_bundle, tiny_model

SENTENCE = ["the", "cat", "né"]


def vectors(bundle):
    return Embedder(bundle).embed([SENTENCE])[0].layers


def test_files_there_and_back(any_bundle):
    files = to_files(any_bundle)
    assert set(files) >= {"config.json", "model.safetensors"}
    np.testing.assert_array_equal(vectors(from_files(files)), vectors(any_bundle))


def test_nothing_but_a_model_is_replaced(tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(DataError, match="holds other files than a model"):
        store(tiny_bundle(), tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "precious"
    (tmp_path / "empty").mkdir()
    store(tiny_bundle(), tmp_path / "empty")


def test_over_the_files_it_was_read_from(tmp_path):
    store(tiny_bundle(), tmp_path / "model")
    mapped = load_model(tmp_path / "model")
    expected = vectors(tiny_bundle())
    store(mapped, tmp_path / "model")
    np.testing.assert_array_equal(vectors(mapped), expected)
    np.testing.assert_array_equal(vectors(load_model(tmp_path / "model")), expected)
    store(tiny_bundle(tiny_model(seed=1)), tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_the_softmax_stays_out():
    files = to_files(tiny_bundle(vocabulary=True, softmax=True))
    assert "softmax.safetensors" not in files


def test_names_cannot_leave_the_folder(tmp_path):
    files = to_files(tiny_bundle())
    outside = tmp_path / "outside"
    from_files(files | {str(outside): b"x", "../outside": b"x"})
    assert not outside.exists()


def test_damaged():
    with pytest.raises(ModelFileError, match="holds no options file"):
        from_files({"some.txt": b"x"})
