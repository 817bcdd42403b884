"""A researcher compares encoders: a first look with one seed, then more, then a table for the paper."""

import json

import pytest
from click.testing import CliRunner

from elmokit.cli import main
from tests.task_data import write_labelled


def test_a_comparison_that_grows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for part in ("train", "dev"):
        write_labelled(tmp_path, part)
    quick = ("--epochs", "1", "--set", "head.rnn=8", "--set", "training.least_steps=1")

    def compare(*arguments):
        done = CliRunner().invoke(main, ["compare", "classifier", ".", "-o", "compared", *quick, *arguments])
        assert done.exit_code == 0, done.stderr
        print(done.stdout)
        return done

    first = compare("--encoders", "chars", "--seeds", "1")
    assert "±" not in first.stdout  # one run has no deviation
    second = compare("--encoders", "chars", "--seeds", "2", "--resume")
    assert "chars, seed 1" in second.stderr  # taken from the first look: it is the same to the digit
    assert (tmp_path / "compared" / "comparison.md").read_text() == second.stdout
    third = compare("--encoders", "chars", "--seeds", "2", "--resume", "--quiet", "--json")
    assert third.stderr == ""
    (found,) = map(json.loads, third.stdout.splitlines())
    scores = [run["score"] for run in found["runs"]]
    assert found["deviation"] == pytest.approx(abs(scores[0] - scores[1]) / 2**0.5)
    assert f"| {100 * found['score']:.2f} ± {100 * found['deviation']:.2f} |" in second.stdout
    assert (tmp_path / "compared" / "comparison.png").exists()
