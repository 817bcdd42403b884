import json

import pytest


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("A bank by the river.\nMy bank took the money.\nThe bank is closed.\n")
    return path


def test_lines_show_cosine_number_and_sentence(run, model, text):
    shown = run("neighbours", "bank", text, "-m", model, "-k", "1").stdout.splitlines()
    assert shown[0] == " 1.000       1  A bank by the river."
    assert len(shown) == 2


def test_the_word_is_highlighted_on_a_terminal(run, model, text):
    assert (
        "A \x1b[32m\x1b[1mbank\x1b[0m by" in run("neighbours", "bank", text, "-m", model, color=True).stdout
    )


def test_json_query_and_layer(run, model, text):
    shown = run("neighbours", "bank", text, "-m", model, "--query", "a bank", "--layer", "0", "--json").stdout
    uses = [json.loads(line) for line in shown.splitlines()]
    assert uses[0]["text"] == "a bank"
    # The token layer does not know the context.
    assert [use["cosine"] for use in uses] == pytest.approx([1] * 4)


def test_any_word(run, model, text):
    assert (
        len(run("neighbours", "bank", text, "-m", model, "--any", "-k", "50").stdout.splitlines())
        == 1 + 6 + 5
    )


def test_a_text_without_the_word(run, model, tmp_path):
    (tmp_path / "other.txt").write_text("nothing of the kind\n")
    shown = run("neighbours", "play", tmp_path / "other.txt", "-m", model, "--query", "a play")
    assert "the text has no other use of 'play' to compare with" in shown.stderr


def test_word_that_is_not_there(run, model, text):
    refused = run("neighbours", "play", text, "-m", model)
    assert refused.exit_code == 1
    assert "has no token 'play'" in refused.stderr
