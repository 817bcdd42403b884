"""Full and read-only disks, damaged runs, files that change under a running model: never a traceback."""

import errno
import json
import os
import stat
import subprocess
import sys

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import elmokit
from elmokit import DataError, ModelFileError
from elmokit.base import files
from elmokit.cli import main
from elmokit.embed import Embedder, embed_file
from elmokit.formats import load_model, save_model
from elmokit.training import Checkpoints, read_metrics
from elmokit.vectors import Layout, Row, Spool
from tests.small_runs import make_loop, prepare, sentences
from tests.task_data import quick_settings, write_labelled
from tests.tiny import tiny_bundle, tiny_config, tiny_model

WORDS = ["the", "cat", "sat"]
GARBAGE = {"noise": bytes(range(256)) * 9, "empty": b"", "a number": b"5"}


def invoke(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def model(tmp_path):
    save_model(tiny_bundle(vocabulary=True, softmax=True), tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def data(tmp_path):
    (tmp_path / "data").mkdir()
    for part in ("train", "dev"):
        write_labelled(tmp_path / "data", part)
    return tmp_path / "data"


@pytest.fixture
def train(data, tmp_path):
    def train(**how):
        settings = quick_settings("classifier", "training.epochs=2", "head.rnn=4")
        return elmokit.train(
            "classifier", data, encoder="chars", out=tmp_path / "out", settings=settings, **how
        )

    return train


# A running model and its files


def test_a_loaded_model_does_not_depend_on_its_files(model):
    before = elmokit.load(model).embed([WORDS])[0].layers
    running, weights = elmokit.load(model), model / "model.safetensors"
    weights.write_bytes(bytes(weights.stat().st_size))  # in place, as `cp` does
    np.testing.assert_array_equal(running.embed([WORDS])[0].layers, before)
    os.truncate(weights, 10)
    np.testing.assert_array_equal(running.embed([["new", "words", *WORDS]])[0].tokens[2:], WORDS)


@pytest.mark.parametrize("format", ["native", "hdf5"])
def test_a_softmax_that_changes_before_it_is_read(tmp_path, format):
    bundle = tiny_bundle(tiny_model(tiny_config(forget_bias=1.0)), vocabulary=True, softmax=True)
    save_model(bundle, tmp_path / "model", format=format)
    loaded = load_model(tmp_path / "model")
    (weights,) = (tmp_path / "model").glob("softmax*")
    os.utime(weights, ns=(0, 0))
    with pytest.raises(ModelFileError, match=r"softmax.* has changed since the model was loaded"):
        loaded.softmax.read()


# Permissions and flushing


@pytest.mark.skipif(os.name == "nt", reason="Windows has no umask")
def test_what_is_saved_is_as_private_as_the_umask_says(tmp_path, train):
    before = os.umask(0o077)
    try:
        save_model(tiny_bundle(vocabulary=True, softmax=True), tmp_path / "private")
        train()
    finally:
        os.umask(before)
    saved = [path for name in ("private", "out") for path in (tmp_path / name).rglob("*") if path.is_file()]
    assert {"model.safetensors", "softmax.safetensors", "vocab.txt"} <= {path.name for path in saved}
    assert {stat.S_IMODE(path.stat().st_mode) for path in saved} == {0o600}


def test_what_is_saved_has_reached_the_disk_before_it_gets_its_name(tmp_path, monkeypatch, train):
    flushed, rename = set(), files.Path.rename

    def flush(descriptor):
        flushed.add(os.fstat(descriptor).st_ino)

    def renamed(path, target):
        inner = [path, *path.rglob("*")] if path.is_dir() else [path]
        assert {one.stat().st_ino for one in inner} <= flushed, path
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr(files.Path, "replace", renamed)
    train()
    monkeypatch.setattr(files.Path, "rename", renamed)
    save_model(tiny_bundle(vocabulary=True, softmax=True), tmp_path / "model")
    assert (tmp_path / "model" / "config.json").exists()


# Spools


def spooled(target, numbers=3):
    layout = Layout(shape=(-1, 2), dtype="float32")
    with Spool(target, layout, {}, resume=True) as made:
        for _ in range(made.num_rows, numbers):
            vectors = np.ones((1, 2), np.float32)
            made.add(Row(text="a", tokens=["a"], offsets=[(0, 1)], vectors=vectors))
            made._finish_part()
    return Spool(target, layout, {}, resume=True)


@pytest.mark.parametrize("line", [b"{}", b'{"text": 1}', b'{"text": "a", "tokens": ["a"], "offsets": [1]}'])
def test_a_line_of_a_spool_that_is_no_row(tmp_path, line):
    spooled(tmp_path / "v.h5")
    (tmp_path / "v.h5.part" / "000001.jsonl").write_bytes(line + b"\n")
    with pytest.raises(DataError, match=r"has a line without text, tokens and offsets; the spool is damaged"):
        spooled(tmp_path / "v.h5")


def test_a_spool_without_the_vectors_of_a_part(tmp_path):
    spooled(tmp_path / "v.h5")
    (tmp_path / "v.h5.part" / "000001.vectors").unlink()
    with pytest.raises(DataError, match=r"lost some of its parts; the spool is damaged"):
        spooled(tmp_path / "v.h5")


def test_a_spool_that_was_being_deleted_is_a_finished_job(tmp_path):
    embedder, target = Embedder(tiny_bundle()), tmp_path / "v.npy"
    embed_file(embedder, ["the cat"], target, tokens=True)
    done = target.read_bytes()
    for names in (["packed.json", "job.json", "000001.jsonl"], ["packed.json"], []):
        (tmp_path / "v.npy.part").mkdir()
        for name in names:
            (tmp_path / "v.npy.part" / name).write_text("{}")
        assert embed_file(embedder, ["the cat"], target, tokens=True, resume=True) is None
        assert sorted(path.name for path in tmp_path.iterdir()) == ["v.npy"]
    assert target.read_bytes() == done


def test_files_of_others_in_the_folder_of_a_spool_stay(tmp_path):
    spooled(tmp_path / "v.h5")
    notes = tmp_path / "v.h5.part" / "notes.json"
    notes.write_text("precious")
    with pytest.raises(DataError, match="Directory not empty"):
        embed_file(Embedder(tiny_bundle()), ["the cat"], tmp_path / "v.h5", overwrite=True)
    assert notes.read_text() == "precious"


def test_an_early_ctrl_c_offers_nothing_to_resume(tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Embedder, "stream", interrupted)
    with pytest.raises(KeyboardInterrupt, match=r"^interrupted; nothing is kept yet: start again$"):
        embed_file(Embedder(tiny_bundle()), ["the cat"], tmp_path / "v.h5", tokens=True)
    assert list(tmp_path.iterdir()) == []


# Damaged runs


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_for_checkpoints_of_a_task(tmp_path, train, content):
    (tmp_path / "out" / "checkpoints").mkdir(parents=True)
    (tmp_path / "out" / "checkpoints" / "step-000000003.pt").write_bytes(content)
    with pytest.raises(DataError, match=r"no checkpoint in .* can be read"):
        train(resume=True)


@pytest.mark.parametrize(
    "content", [{}, {"position": {}, "settings": None, "job": {}}, {"position": {"x": 1}}]
)
def test_a_checkpoint_of_something_else(tmp_path, content):
    corpus = prepare(tmp_path / "corpus", sentences(30))
    run = tmp_path / "run"
    make_loop(corpus, run, steps=3).run()
    whole = Checkpoints(run).load()
    for path in (run / "checkpoints").iterdir():
        filled = content if "settings" not in content else content | {"settings": whole["settings"]}
        torch.save(filled, path)
    with pytest.raises(DataError, match=r"has a checkpoint that does not fit this run"):
        make_loop(corpus, run, steps=3).run()


@pytest.mark.parametrize("content", [{}, {"position": 3}, {"position": {"step": "x"}}, {"progress": [1]}])
def test_looking_at_a_run_whose_checkpoint_is_something_else(tmp_path, content):
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    torch.save(content, tmp_path / "run" / "checkpoints" / "step-000000001.pt")
    with pytest.raises(DataError, match=r"has a checkpoint of something else"):
        elmokit.describe(tmp_path / "run")
    assert [finding.level for finding in elmokit.diagnose(tmp_path / "run")] == ["error", "ok"]


@pytest.mark.parametrize("record", [b"[]", b"[" * 5000, b"{}", b"\xff"])
def test_looking_at_a_run_whose_record_is_damaged(tmp_path, record):
    (tmp_path / "run" / "training").mkdir(parents=True)
    (tmp_path / "run" / "training" / "run.json").write_bytes(record)
    with pytest.raises(DataError, match=r"run\.json is damaged"):
        elmokit.describe(tmp_path / "run")


def test_looking_at_a_task_whose_scores_are_damaged(tmp_path, train):
    train()
    (tmp_path / "out" / "scores.json").write_text("{")
    with pytest.raises(DataError, match=r"out is a task model, but damaged \(JSONDecodeError: Expecting"):
        elmokit.describe(tmp_path / "out")


def test_a_damaged_line_of_metrics(tmp_path):
    (tmp_path / "metrics.jsonl").write_bytes(b'{"step": 1}\n\xff\n')
    with pytest.raises(DataError, match=r"metrics.jsonl is damaged"):
        read_metrics(tmp_path)


# Disks


def test_a_full_disk_at_the_first_checkpoint_can_be_resumed(tmp_path, train, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(torch, "save", full)
        with pytest.raises(DataError, match=r"free some space.*resume=True"):
            train()
    assert train(resume=True).history


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")  # noqa: PTH110
@pytest.mark.parametrize("command", ["info", "doctor"])
def test_standard_output_that_is_full(model, command):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            [sys.executable, "-m", "elmokit.cli", command, model],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["elmokit: cannot write the output: No space left on device"]


def test_impossible_places(tmp_path, model, data, train):
    train()
    (tmp_path / "file").touch()
    nowhere = tmp_path / "file" / "below"
    settings = ["--set", "training.epochs=1"]
    commands = [
        ["evaluate", data / "dev.tsv", "-m", tmp_path / "out", "--errors", nowhere],
        ["train", "classifier", data, "--encoder", "chars", *settings, "-o", nowhere],
        ["compare", "classifier", data, "--encoders", "chars", *settings, "-o", nowhere],
        ["convert", model, "-o", nowhere],
        ["prepare", data / "dev.tsv", "--language", "en", "-o", nowhere],
        ["pretrain", data / "dev.tsv", "--language", "en", "-o", nowhere],
        ["perplexity", data / "dev.tsv", "-m", model, "--tokens", "--sentences", nowhere],
    ]
    for command in commands:
        result = invoke(*command)
        assert result.exit_code == 1, (command, result.exception)
        assert f"cannot write {nowhere}: " in result.stderr, command
    picture = nowhere.with_suffix(".png")
    result = invoke("uses", "saw", data / "dev.tsv", "-m", model, "--picture", picture)
    assert f"the folder {picture.parent} does not exist" in result.stderr
    assert json.loads((tmp_path / "out" / "scores.json").read_text())  # what was there is untouched


# Indexes


def test_an_index_is_replaced_by_one_that_is_whole(tmp_path):
    embedder = Embedder(tiny_bundle())

    def build(documents, **how):
        return elmokit.Index.build(documents, tmp_path / "index", model=embedder, language="en", **how)

    def texts():
        yield "the new one"
        assert [one.text for one in elmokit.Index.open(tmp_path / "index")] == ["the old one"]
        raise KeyboardInterrupt

    build(["the old one"])
    with pytest.raises(KeyboardInterrupt):
        build(texts(), overwrite=True)
    assert [one.text for one in elmokit.Index.open(tmp_path / "index")] == ["the old one"]
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
    found = build(["the new one"], overwrite=True)
    assert [one.text for one in found] == ["the new one"]
    assert found.report.added == 1
