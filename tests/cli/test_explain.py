"""`elmokit explain`."""

import json

import pytest


def test_a_vector(run, model):
    shown = run("explain", "the bank raised the rate", "-m", model, "--tokenizer", "rules:en", "--at", "1")
    assert shown.exit_code == 0, shown.stderr
    assert shown.stdout.startswith("the vector of 'bank'")
    given = ("-m", model, "--tokenizer", "rules:en", "--json")
    from_pipe = run("explain", "-", *given, input="the bank raised the rate\n")
    assert json.loads(from_pipe.stdout) == json.loads(
        run("explain", "the bank raised the rate", *given).stdout
    )
    assert json.loads(from_pipe.stdout)["of"] == ""


def test_decisions_of_a_bundled_model(run, tmp_path):
    text = "She lives in <Paris> ."
    page = run("explain", text, "--task", "ner-en", "--show", "html").stdout
    assert page.startswith('<!doctype html>\n<meta charset="utf-8">')
    assert "&lt;" in page
    assert "<Paris>" not in page
    data = tmp_path / "more.txt"
    data.write_text("Rome\tB-LOC\nfell\tO\n")
    shown = run("explain", text, "--task", "ner-en", "--at", "Paris", "--examples", data, "-k", 1, "--json")
    (found,) = map(json.loads, shown.stdout.splitlines())
    assert (found["span"], found["label"]) == ("Paris", "LOC")
    assert [one["text"] for one in found["examples"]] == ["[Rome] fell"]
    nothing = run("explain", "It is late .", "--task", "ner-en")
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert "the model found nothing in the text; ask about a word with --at" in nothing.stderr


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--label", "PER"], "--label has no effect without --task"),
        (["--task", "ner-en", "-m", "zh"], "--model has no effect with --task"),
        (["--task", "ner-en", "--other", "x"], "--other has no effect with --task"),
        (["--task", "ner-en", "-k", "3"], "-k has no effect without --examples"),
    ],
)
def test_options_without_effect(run, given, message):
    refused = run("explain", "a text", *given)
    assert refused.exit_code == 2
    assert message in refused.stderr
