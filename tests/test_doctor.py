import numpy as np
import pytest
from tests.tiny import tiny_arrays, tiny_config, tiny_options, write_folder

from elmokit.doctor import examine
from elmokit.vector_files import Layout, Row, write_vectors


def messages(path, level, **settings):
    return [finding.message for finding in examine(path, **settings) if finding.level == level]


def test_options_of_training_are_named(tmp_path):
    folder = write_folder(tmp_path / "model", options=tiny_options(tiny_config(), n_characters=261))
    for path in (folder, folder / "options.json"):
        assert any(
            "n_characters is 261, as training writes it" in message for message in messages(path, "warning")
        )
        assert messages(path, "error") == []


def test_options_that_do_not_fit(tmp_path):
    folder = write_folder(tmp_path / "model", options=tiny_options(tiny_config(cell_dim=7)))
    (error,) = messages(folder, "error")
    assert "options" in error


def test_weights_that_are_no_numbers(tmp_path):
    arrays = tiny_arrays(tiny_config())
    arrays["CNN_proj/b_proj"][0] = np.nan
    (error,) = messages(write_folder(tmp_path / "model", arrays=arrays), "error")
    assert "encoder.projection.bias holds numbers that are none" in error


def test_embeddings_are_no_model(tmp_path):
    path = tmp_path / "v.h5"
    row = Row(text="a", tokens=["a"], offsets=[(0, 1)], vectors=np.ones((1, 2), np.float32))
    write_vectors(path, iter([row]), Layout(shape=(-1, 2), dtype="float32"), ending=".h5", count=1)
    assert f"{path} is a file of computed embeddings (1 sentences), no model" in messages(path, "error")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"<!DOCTYPE html>", "a web page"),
        (b"version https://git-lfs.github.com", "Git LFS pointer"),
    ],
)
def test_what_else_a_file_is(tmp_path, content, words):
    path = tmp_path / "weights.hdf5"
    path.write_bytes(content)
    assert any(words in finding.message for finding in examine(path))
    assert messages(path, "error")


def test_truncated_weights(tmp_path):
    folder = write_folder(tmp_path / "model")
    weights = folder / "lm_weights.hdf5"
    weights.write_bytes(weights.read_bytes()[:2000])
    assert messages(folder, "error")
    assert messages(weights, "error")
