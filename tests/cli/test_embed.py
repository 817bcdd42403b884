import json
import os
import re
import signal
import subprocess
import sys

import h5py
import numpy as np
import pytest

import elmokit
from elmokit.embed.embedder import Embedder
from tests.conversation import conversation

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
    assert (done.exit_code, done.stdout) == (0, "")
    assert [line.partition(";")[0] for line in done.stderr.splitlines()] == [
        "elmokit: the model's files do not say its language or how its text was tokenised"  # a warning
    ]
    assert "Pass --tokenizer rules:en (or another)" in done.stderr
    with h5py.File(tmp_path / "v.h5") as file:
        assert file["0"].shape == (3, 2, 6)
        assert file["1"].shape == (3, 0, 6)


def test_lines_of_a_pipe_are_embedded_one_by_one(run, model):
    elmo = elmokit.load(model, tokenizer="rules:en")
    arguments = ("embed", "-", "-o", "-", "-m", model, "--tokenizer", "rules:en")
    with conversation(*arguments) as ask:
        for number, line in enumerate(("a bank", "", "the cat sat"), start=1):
            found = json.loads(ask(line))
            expected = elmo.embed(line)
            assert (found["line"], found["text"], found["tokens"]) == (number, line, expected.tokens)
            vectors = np.array(found["vectors"], np.float32).reshape(expected.vectors.shape)
            np.testing.assert_allclose(vectors, expected.vectors, atol=1e-6)
    pooled = json.loads(run(*arguments, "--pooling", "mean", "--layers", "top", input="a bank\n").stdout)
    np.testing.assert_allclose(pooled["vectors"], elmo.embed("a bank").layers[-1].mean(axis=0), atol=1e-6)
    refused = run(*arguments, "--resume")
    assert (refused.exit_code, "--resume has no effect with --out -" in refused.stderr) == (2, True)


def test_existing_output(run, model, text, tmp_path):
    target = tmp_path / "v.h5"
    target.write_text("precious")
    refused = run("embed", text, "-o", target, "--model", model)
    assert refused.exit_code == 1
    assert "exists already" in refused.stderr
    assert "--overwrite" in refused.stderr
    resumed = run("embed", text, "-o", target, "--model", model, "--resume")
    assert resumed.exit_code == 1
    assert "cannot be read as a file of vectors" in resumed.stderr
    assert target.read_text() == "precious"
    assert run("embed", text, "-o", target, "--model", model, "--overwrite").exit_code == 0
    resumed = run("embed", text, "-o", target, "--model", model, "--resume")
    assert (resumed.exit_code, "is complete (60 rows): nothing to resume" in resumed.stderr) == (0, True)


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

    def stream(self, texts, **settings):
        for number, sentence in enumerate(plain(self, texts, **settings)):
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
    assert (" of them before" if function != "_delete_spool" else "is complete") in resumed.stderr
    assert not (tmp_path / "v.h5.part").exists()
    with h5py.File(whole) as one, h5py.File(target) as other:
        assert set(one) == set(other)
        assert one["sentence_to_index"][0] == other["sentence_to_index"][0]
        for number in range(
            len(LINES)
        ):  # a resumed run has other batches, and so, to the last bit, other sums
            np.testing.assert_allclose(one[str(number)][...], other[str(number)][...], atol=1e-6)


def test_an_option_without_effect_is_refused(run, model, text, tmp_path):
    for given, message in (
        (
            ["--word", "bank", "--pooling", "max"],
            "--word bank writes vectors of uses, --pooling max",
        ),
        (["--match-case"], "--match-case has no effect without a word"),
        (["--words", "jieba", "--tokens"], "choose one of --tokens and --words"),
        (["--precision", "int8", "--fast"], "choose one of --precision and --fast"),
        (["--dry-run", "--resume"], "--resume has no effect with --dry-run"),
        (["--dry-run", "--workers", "2"], "--workers has no effect with --dry-run"),
        (
            ["--layers", "first"],
            "'first' is none of all, top, average, mix, a number, or",
        ),
        (["--layers", "7"], "there is no layer 7; the model has 0 to 2"),
    ):
        refused = run("embed", text, "-o", tmp_path / "v.h5", "--model", model, *given)
        assert refused.exit_code in (1, 2)
        assert message in refused.stderr


def test_layers_by_number_and_a_table(run, model, tmp_path):
    given = ["-t", "my bank", "-t", "", "-t", "A BANK", "--model", model, "--tokenizer", "rules:en", "-q"]
    done = run("embed", *given, "-o", tmp_path / "v.csv", "--word", "bank", "--layers", "0,2")
    assert done.exit_code == 0, done.stderr
    with elmokit.read_vectors(tmp_path / "v.csv") as found:
        assert [(use.line, use.tokens, use.offsets) for use in found] == [
            (1, ["bank"], [(3, 7)]),
            (3, ["BANK"], [(2, 6)]),
        ]
        elmo = elmokit.load(model, tokenizer="rules:en")
        np.testing.assert_allclose(found[0].layers, elmo.embed("my bank").layers[[0, 2], 1], atol=1e-6)
    assert run("embed", *given, "-o", tmp_path / "v.npy", "--layers", "1").exit_code == 0
    assert np.load(tmp_path / "v.npy").shape == (3, 6)


def test_a_dry_run_writes_nothing(run, model, text, tmp_path):
    given = [text, "-o", tmp_path / "v.parquet", "--model", model, "--tokenizer", "rules:en", "--dry-run"]
    done = run("embed", *given)
    assert done.exit_code == 0, done.stderr
    assert re.search(
        r"v.parquet: 60 sentences, about \d+ tokens; about \S+ seconds; about \S+ kB", done.stdout
    )
    assert list(tmp_path.iterdir()) == [text]
    estimate = json.loads(run("embed", *given, "--json").stdout)
    report = json.loads(run("embed", *given[:-1], "--json").stdout)
    assert (estimate["sentences"], estimate["tokens"]) == (report["sentences"], report["tokens"])
    assert estimate["bytes"] == pytest.approx((tmp_path / "v.parquet").stat().st_size, rel=0.3)
