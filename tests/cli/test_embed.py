import os
import signal
import subprocess
import sys

import h5py
import numpy as np
import pytest

import elmokit
from elmokit.embed.embedder import Embedder

LINES = [f"line {number} has a bank" + " and a river" * (number % 5) for number in range(60)]


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("\n".join(LINES) + "\n")
    return path


def test_embed(run, model, text, tmp_path):
    done = run(
        "embed", text, "-o", tmp_path / "v.h5", "--model", model, "--layers", "top", "--dtype", "float16"
    )
    assert done.exit_code == 0, done.stderr
    assert done.stdout == ""
    assert f"{tmp_path}/v.h5: 60 sentences; " in done.stderr
    with h5py.File(tmp_path / "v.h5") as file:
        expected = elmokit.load(model).embed(LINES[7]).layers[-1]
        np.testing.assert_allclose(file["7"][...], expected, atol=1e-3)


def test_weights_apart_tokenizer_tokens_and_pooling(run, model, text, tmp_path):
    files = [model / "options.json", "--weights", model / "lm_weights.hdf5"]
    for settings in (["--tokenizer", "whitespace"], ["--tokens"]):
        done = run(
            "embed",
            text,
            "-o",
            tmp_path / "v.npy",
            "--model",
            *files,
            *settings,
            "--pooling",
            "max",
            "--overwrite",
        )
        assert done.exit_code == 0, done.stderr
        expected = elmokit.load(model).encode([line.split() for line in LINES], pooling="max")
        np.testing.assert_allclose(np.load(tmp_path / "v.npy"), expected, atol=1e-5)


def test_standard_input_and_quiet(run, model, tmp_path):
    done = run("embed", "-", "-o", tmp_path / "v.h5", "--model", model, "--quiet", input="a bank\n\n")
    assert (done.exit_code, done.output) == (0, "")
    with h5py.File(tmp_path / "v.h5") as file:
        assert file["0"].shape == (3, 2, 6)
        assert file["1"].shape == (3, 0, 6)


def test_existing_output(run, model, text, tmp_path):
    target = tmp_path / "v.h5"
    target.write_text("precious")
    refused = run("embed", text, "-o", target, "--model", model)
    assert refused.exit_code == 1
    assert "exists already" in refused.stderr
    assert "--overwrite" in refused.stderr
    resumed = run("embed", text, "-o", target, "--model", model, "--resume")
    assert resumed.exit_code == 0
    assert "is complete: nothing to resume" in resumed.stderr
    assert target.read_text() == "precious"
    assert run("embed", text, "-o", target, "--model", model, "--overwrite").exit_code == 0


def test_unknown_ending_and_device(run, model, text, tmp_path):
    refused = run("embed", text, "-o", tmp_path / "v.txt", "--model", model)
    assert refused.exit_code == 1
    assert "use one of .h5, .hdf5, .npz, .parquet, .arrow, .npy" in refused.stderr
    refused = run("embed", text, "-o", tmp_path / "v.h5", "--model", model, "--device", "abacus")
    assert "device 'abacus' cannot be used here" in refused.stderr


def test_language_without_split_is_misuse(run, model, text, tmp_path):
    refused = run("embed", text, "-o", tmp_path / "v.h5", "--model", model, "--language", "en")
    assert refused.exit_code == 2
    assert "--language has no effect without --split" in refused.stderr


def test_ctrl_c_is_exit_130_and_says_how_to_go_on(run, model, text, tmp_path, monkeypatch):
    plain = Embedder.stream

    def stream(self, texts):
        for number, sentence in enumerate(plain(self, texts)):
            if number == 5:
                raise KeyboardInterrupt
            yield sentence

    with monkeypatch.context() as patch:
        patch.setattr(Embedder, "stream", stream)
        stopped = run("embed", text, "-o", tmp_path / "v.h5", "--model", model)
    assert stopped.exit_code == 130
    assert "elmokit: interrupted; 5 sentences are kept in" in stopped.stderr
    assert "--resume" in stopped.stderr
    resumed = run("embed", text, "-o", tmp_path / "v.h5", "--model", model, "--resume")
    assert "60 sentences, 5 of them before" in resumed.stderr


# The process kills itself as `kill -9` does, at a place that can be chosen.
_KILLED = """
import os, signal, sys
from elmokit.cli import main
from elmokit.vectors import spool

home, name, calls = (spool if sys.argv[1].islower() else spool.Spool), sys.argv[1].lower(), int(sys.argv[2])
spool.PART_BYTES = 2000
plain = getattr(home, name)

def killed(*arguments, **settings):
    global calls
    calls -= 1
    if calls == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return plain(*arguments, **settings)

setattr(home, name, killed)
main(sys.argv[3:])
"""


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        ("ADD", 40),  # in the midst of a part
        ("write_vectors", 1),  # while packing
        ("_delete_spool", 2),  # renamed, spool not yet deleted (the first call is at the start)
    ],
)
def test_killed_and_resumed_is_the_same_file(run, model, text, tmp_path, function, calls):
    settings = ["--model", str(model)]
    whole, target = tmp_path / "whole.h5", tmp_path / "v.h5"
    assert run("embed", text, "-o", whole, *settings).exit_code == 0
    command = [sys.executable, "-c", _KILLED, function, str(calls), "embed", text, "-o", target, *settings]
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}  # more would fight for the cores with other tests
    killed = subprocess.run(command, check=False, capture_output=True, env=one_thread)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert len(list((tmp_path / "v.h5.part").glob("0*.jsonl"))) > 3
    assert run("embed", text, "-o", target, *settings).exit_code == 1
    resumed = run("embed", text, "-o", target, *settings, "--resume")
    assert resumed.exit_code == 0, resumed.stderr
    assert " of them before" in resumed.stderr
    assert not (tmp_path / "v.h5.part").exists()
    with h5py.File(whole) as one, h5py.File(target) as other:
        assert set(one) == set(other)
        assert one["sentence_to_index"][0] == other["sentence_to_index"][0]
        for number in range(
            len(LINES)
        ):  # a resumed run has other batches, and so, to the last bit, other sums
            np.testing.assert_allclose(one[str(number)][...], other[str(number)][...], atol=1e-6)


def test_an_option_without_effect_is_refused(run, model, text, tmp_path):
    refused = run("embed", text, "-o", tmp_path / "v.h5", "--model", model, "--pooling", "max")
    assert refused.exit_code == 1
    assert "--pooling max makes sentence vectors, which only a .npy file holds" in refused.stderr
