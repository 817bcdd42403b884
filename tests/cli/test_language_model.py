"""`elmokit perplexity`, `score`, `fill` and `generate`."""

import json
import os
from pathlib import Path

import pytest

from tests.conversation import conversation
from tests.tiny import write_folder


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("the cat sat\n\nthe zebra\n")
    return path


def test_perplexity(run, model, text):
    shown = run("perplexity", "-m", model, text, "--tokens")
    assert shown.exit_code == 0
    assert [line.split()[0] for line in shown.stdout.splitlines()] == [
        "forward",
        "backward",
        "mean",
        "bits",
        "unknown",
        "sentences",
    ]
    assert "20.00%  of 5 words" in shown.stdout
    assert shown.stderr == ""


def test_perplexity_for_machines(run, model, text, tmp_path):
    scores = tmp_path / "scores.tsv"
    shown = run("perplexity", "-m", model, text, "--tokenizer", "rules:en", "--json", "--sentences", scores)
    found = json.loads(shown.stdout)
    assert (found["sentences"], found["words"], found["tokens"], found["oov_rate"]) == (2, 5, 7, 0.2)
    assert 1 < found["forward"] < 100
    assert [line.split("\t")[0] for line in scores.read_text().splitlines()] == ["sentence", "1", "3"]


def test_scores_replace_a_file_only_when_they_are_whole(run, model, text, tmp_path):
    scores = tmp_path / "scores.tsv"
    scores.write_text("precious")
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"The cat\n\xff\n")
    assert run("perplexity", "-m", model, bad, "--sentences", scores).exit_code == 1
    assert scores.read_text() == "precious"
    before = text.read_bytes()
    refused = run("perplexity", "-m", model, text, "--sentences", text)
    assert refused.exit_code == 1
    assert "is the text itself" in refused.stderr
    assert text.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.txt", "scores.tsv", "text.txt"]
    link = tmp_path / "link.tsv"
    link.symlink_to(scores)
    assert run("perplexity", "-m", model, text, "--sentences", link).exit_code == 0
    assert link.is_symlink()
    assert scores.read_text().startswith("sentence\t")
    assert run("perplexity", "-m", model, text, "--sentences", tmp_path).exit_code == 1  # a folder
    assert run("perplexity", "-m", model, text, "--sentences", os.devnull).exit_code == 0
    assert not Path(os.devnull).is_file()


def test_perplexity_of_standard_input_that_is_split(run, model):
    arguments = (
        "perplexity",
        "-m",
        model,
        "-",
        "--split",
        "--language",
        "en",
        "--tokenizer",
        "rules:en",
        "--json",
    )
    assert json.loads(run(*arguments, input="The cat sat. The bank\nis closed.").stdout)["sentences"] == 2


def test_score_shows_each_word_and_marks(run, model):
    shown = run(
        "score", "-t", "the zebra sat", "--model", model, "--mark", "1", "--tokenizer", "rules:en"
    ).stdout
    assert shown.count("*") == 1
    (zebra,) = (line for line in shown.splitlines() if "zebra" in line)
    assert "?" in zebra
    assert "sentence" in shown
    assert "log-probability -" in shown


def test_score_of_a_long_sentence(run, model):
    found = json.loads(
        run("score", "-t", "cat " * 100, "--model", model, "--tokenizer", "rules:en", "--json").stdout
    )
    assert len(found["tokens"]) == 100


def test_score_of_a_file_that_is_not_there(run, model):
    refused = run("score", "nowhere.txt", "--model", model)
    assert refused.exit_code == 1
    assert "nowhere.txt does not exist, expected a text file; check the path, or pass text" in refused.stderr


def test_score_of_a_file_is_a_line_a_sentence(run, model, text):
    lines = run("score", text, "--model", model, "--tokens").stdout.splitlines()
    assert len(lines) == 3
    assert lines[0].replace("*", "").endswith("  the cat sat")
    assert "*zebra" in lines[2]


def test_score_for_machines(run, model, text):
    lines = run("score", text, "--model", model, "--tokens", "--json").stdout.splitlines()
    assert [json.loads(line)["tokens"] for line in lines] == [["the", "cat", "sat"], [], ["the", "zebra"]]


def test_fill(run, model):
    arguments = ("fill", "-t", "the [MASK] sat [MASK]", "--model", model, "--tokens", "--top", "2")
    shown = run(*arguments).stdout
    assert "[MASK] 1" in shown
    assert "[MASK] 2" in shown
    assert "from the right" in shown
    gaps = json.loads(run(*arguments, "--json").stdout)["gaps"]
    assert [len(gap) for gap in gaps] == [2, 2]
    assert gaps[0][0]["word"] in shown


def test_fill_each_line_of_a_file(run, model, tmp_path):
    path = tmp_path / "gaps.txt"
    path.write_text("the [MASK]\n\n[MASK] sat\n")
    shown = run("fill", path, "--model", model, "--tokens")
    assert shown.exit_code == 0, shown.stderr
    assert "[MASK] 1 of [MASK] sat" in shown.stdout
    lines = run("fill", path, "--model", model, "--tokens", "--json").stdout.splitlines()
    assert [json.loads(line)["text"] for line in lines] == [["the", "[MASK]"], ["[MASK]", "sat"]]


def test_generate(run, model):
    arguments = ("generate", "the cat", "--model", model, "--tokens", "--max-tokens", "5", "-n", "3")
    shown = run(*arguments, "--seed", "7").stdout
    assert len(shown.splitlines()) == 3
    assert all(line.startswith("the cat") for line in shown.splitlines())
    assert run(*arguments, "--seed", "7").stdout == shown
    lists = [json.loads(line) for line in run(*arguments, "--seed", "7", "--json").stdout.splitlines()]
    assert [" ".join(found["tokens"]) for found in lists] == shown.splitlines()
    assert run("generate", "--model", model, "--temperature", "0").exit_code == 0
    piped = run(
        "generate", "-", *arguments[2:], "--seed", "7", input="the cat\nthe bank\n"
    ).stdout.splitlines()
    assert piped[:3] == shown.splitlines()
    assert len(piped) == 6
    assert all(line.startswith("the bank") for line in piped[3:])


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["fill", "-t", "no gap", "--tokens"], 1, "expected [MASK] in the sentence, found none: 'no gap'"),
        (["generate", "--top-p", "0"], 2, "is not in the range 0<x<=1"),
        (["generate", "--temperature", "-1"], 2, "is not in the range x>=0"),
        (["generate", "--seed", "9" * 20], 2, "is not in the range 0<=x<="),
        (["score", "-t", "the", "--tokenizer", "rulse"], 1, "did you mean 'rules'?"),
    ],
)
def test_what_is_refused(run, model, arguments, code, message):
    refused = run(*arguments, "--model", model)
    assert refused.exit_code == code
    assert message in refused.stderr
    assert refused.stdout == ""


def test_lines_of_a_pipe_are_answered_one_by_one(model):
    talk = conversation(
        "score", "-", "--json", "-m", model, "--tokenizer", "rules:en", interrupt=os.name != "nt"
    )
    with talk as ask:
        for line in ("the cat", "", "the bank"):
            assert json.loads(ask(line))["text"] == line


def test_texts_that_cannot_be(run, model, tmp_path):
    (tmp_path / "empty.txt").write_text("\n")
    for arguments, message in [
        ([tmp_path / "empty.txt"], "the text has no words"),
        ([tmp_path / "missing.txt"], "does not exist, expected a text file"),
    ]:
        refused = run("perplexity", "-m", model, "--tokenizer", "rules:en", *arguments)
        assert refused.exit_code == 1
        assert message in refused.stderr
        assert len(refused.stderr.splitlines()) == 1
    assert run("perplexity", "-m", model, tmp_path / "empty.txt", "--language", "en").exit_code == 2


@pytest.mark.parametrize("command", [["score", "-t", "a"], ["fill", "-t", "[MASK]"], ["generate"]])
def test_a_model_without_softmax(run, tmp_path, command):
    refused = run(*command, "--model", write_folder(tmp_path / "bare"))
    assert refused.exit_code == 1
    assert "has no softmax and is therefore no language model" in refused.stderr


def test_blank_lines_and_numbers_of_lines(run, model, tmp_path):
    (tmp_path / "t.txt").write_text("the cat\n\nthe [MASK]\n")
    assert run("score", tmp_path / "t.txt", "-m", model).stdout.splitlines()[1] == ""
    refused = run("fill", tmp_path / "t.txt", "-m", model)
    assert "line 1: expected [MASK] in the sentence, found none: 'the cat'" in refused.stderr
