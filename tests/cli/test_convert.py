import json

import h5py
import numpy as np

import elmokit


def test_there_and_back_is_bit_identical(run, model, tmp_path):
    assert run("convert", model, "--out", tmp_path / "native").exit_code == 0
    done = run("convert", tmp_path / "native", "-o", tmp_path / "back", "--format", "hdf5")
    assert (done.exit_code, done.stderr) == (0, f"wrote {tmp_path}/back\n")
    with (
        h5py.File(model / "lm_weights.hdf5") as before,
        h5py.File(tmp_path / "back" / "weights.hdf5") as after,
    ):
        before.visititems(
            lambda name, item: (
                isinstance(item, h5py.Dataset) and np.testing.assert_array_equal(after[name], item)
            )
        )
    assert elmokit.load(tmp_path / "back").dim == 6


def test_half_as_large(run, model, tmp_path):
    assert run("convert", model, "-o", tmp_path / "half", "--precision", "float16").exit_code == 0
    refused = run("convert", model, "-o", tmp_path / "other", "--precision", "float16", "--format", "hdf5")
    assert refused.exit_code == 1
    assert "float32 only" in refused.stderr


def test_existing_folder(run, model):
    refused = run("convert", model, "-o", model)
    assert refused.exit_code == 1
    assert "exists already" in refused.stderr


def test_what_the_hdf5_layout_cannot_hold_is_told(run, model, tmp_path, caplog):
    assert run("convert", model, "--out", tmp_path / "native").exit_code == 0
    config = json.loads((tmp_path / "native" / "config.json").read_text())
    config["tokenizer"] |= {"language": "en", "lowercase": True}
    (tmp_path / "native" / "config.json").write_text(json.dumps(config))
    assert run("convert", tmp_path / "native", "-o", tmp_path / "hdf5", "--format", "hdf5").exit_code == 0
    assert "pass tokenizer='rules:en' where the model is used, and lower-cased text" in caplog.text
