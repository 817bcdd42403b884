import json

import pytest


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("A bank by the river.\nMy bank took the money.\nThe bank is closed.\n")
    return path


def test_lines_show_cosine_number_and_sentence(run, model, text):
    found = run("neighbours", "BANK", text, "-m", model, "-k", "2")
    assert found.stderr.splitlines()[-1] == "line 1: A bank by the river."
    lines = [line.split(maxsplit=3) for line in found.stdout.splitlines()]
    assert sorted(line[1:] for line in lines) == [
        ["2", "bank", "My bank took the money."],
        ["3", "bank", "The bank is closed."],
    ]


def test_the_word_is_highlighted_on_a_terminal(run, model, text):
    shown = run("neighbours", "bank", text, "-m", model, color=True).stdout
    assert "My \x1b[32m\x1b[1mbank\x1b[0m took" in shown


def test_json_query_and_layer(run, model, text):
    shown = run(
        "neighbours", "bank", text, "-m", model, "--query", "a bank", "--layers", "0", "--json"
    ).stdout
    uses = [json.loads(line) for line in shown.splitlines()]
    assert [use["word"] for use in uses] == ["bank"] * 3
    # The token layer does not know the context.
    assert [use["cosine"] for use in uses] == pytest.approx([1] * 3)


def test_any_word(run, model, text):
    assert (
        len(run("neighbours", "bank", text, "-m", model, "--any", "-k", "50").stdout.splitlines())
        == 6 + 6 + 5 - 1
    )


def test_a_text_without_the_word(run, model, tmp_path):
    (tmp_path / "other.txt").write_text("nothing of the kind\n")
    shown = run("neighbours", "play", tmp_path / "other.txt", "-m", model, "--query", "a play")
    assert "the text has no other use of 'play' to compare with" in shown.stderr


def test_word_that_is_not_there(run, model, text):
    refused = run("neighbours", "play", text, "-m", model)
    assert refused.exit_code == 1
    assert "has no word 'play'" in refused.stderr
