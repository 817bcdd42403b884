"""A student pretrains a model of her own text, stops it in the middle, goes on later, and uses it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import elmokit
from elmokit.cli import main
from tests.small_runs import RECIPE_TEXT, sentences


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run commands in the folder of the text."""
    (tmp_path / "text.txt").write_text("\n".join(sentences(400)) + "\n", encoding="utf-8")
    (tmp_path / "heldout.txt").write_text("\n".join(sentences(15, seed=1)) + "\n", encoding="utf-8")
    (tmp_path / "recipe.toml").write_text(RECIPE_TEXT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(main, arguments)


def press_ctrl_c(*command):
    """Run a command in a process of its own, and interrupt it as soon as it has measured something."""
    process = subprocess.Popen(
        [sys.executable, "-m", "elmokit.cli", *command], stderr=subprocess.PIPE, text=True
    )
    said = []
    for line in process.stderr:
        said.append(line)
        if line.startswith("step "):
            process.send_signal(signal.SIGINT)
            break
    said += process.stderr.readlines()
    process.stderr.close()
    return process.wait(), "".join(said)


@pytest.mark.skipif(os.name == "nt", reason="a console sends Ctrl-C there, not a signal")
def test_interrupted_resumed_used(run):
    begin = ("pretrain", "text.txt", "--language", "en", "--lines", "--heldout", "heldout.txt", "--recipe")
    code, said = press_ctrl_c(*begin, "recipe.toml", "--epochs", "30", "-o", "mine")
    print(said)
    assert code == 130
    assert "mine holds the model as it is now, and elmokit pretrain --out mine --resume continues" in said
    assert max(map(len, said.splitlines())) > 80  # a log in a file is not wrapped

    # What is there opens, and says how far it is.
    assert elmokit.load("mine").embed("the old cat sees a river .").vectors.shape == (7, 16)
    shown = run("info", "mine")
    assert shown.exit_code == 0, shown.stderr
    print(shown.stdout)
    facts = dict(line.split(maxsplit=1) for line in shown.stdout.splitlines() if len(line.split()) > 1)
    assert facts["run"] == "interrupted"
    assert 0 < int(facts["progress"].removesuffix("%")) < 100
    assert facts["continue"] == "elmokit pretrain --out mine --resume"
    found = run("doctor", "mine")
    assert found.exit_code == 0
    assert f"interrupted run, {facts['progress']} done; to go on: elmokit pretrain --out mine" in found.stdout

    # She goes on with what it says; a shorter run is enough for her.
    done = run("pretrain", "--resume", "mine", "--epochs", "6")
    assert done.exit_code == 0, done.stderr
    assert "perplexity of" in done.stdout
    assert "run" not in dict(line.split(maxsplit=1) for line in run("info", "mine").stdout.splitlines()[:9])
    card = Path("mine", "README.md").read_text(encoding="utf-8")
    assert "interrupted" not in card
    assert f"elmokit {elmokit.__version__}" in card

    # She uses it.
    filled = run("fill", "-m", "mine", "-t", "the old [MASK] sees a river .")
    assert filled.exit_code == 0, filled.stderr
    assert any(thing in filled.stdout for thing in ("cat", "dog", "bank", "river", "spring"))
    print(filled.stdout)
    assert run("embed", "heldout.txt", "-m", "mine", "-o", "vectors.npz", "--quiet").exit_code == 0
    assert len(elmokit.read_vectors("vectors.npz")) == 15
