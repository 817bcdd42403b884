"""An engineer has a CSV of messages, with headers of her own, and wants a filter for a pipe."""

import json

import pytest
from click.testing import CliRunner

from elmokit.cli import main
from tests.conversation import conversation

WORDS = {"refund": ("money", "paid", "invoice"), "bug": ("crash", "error", "broken")}
QUICK = (
    *("--set", "head.rnn=8", "--set", "head.dropout=0", "--set", "training.learning_rate=0.02"),
    *("--epochs", "8", "--set", "training.least_steps=30"),
)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run commands in the folder of the messages."""
    rows = [
        f"{number};{day}, the {word} again;{kind}"
        for number, day in enumerate(("Monday", "Tuesday", "today", "now", "Friday", "still"))
        for kind, words in WORDS.items()
        for word in words
    ]
    (tmp_path / "messages.csv").write_text("\n".join(["Id;Message;Category", *rows]) + "\n")
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(main, arguments)


def test_a_filter_from_a_table(run, tmp_path):
    train = ("train", "classifier", "messages.csv", "--encoder", "words", "-o", "triage", *QUICK)

    # She tries it as it is: nothing is guessed, and nothing is left behind.
    refused = run(*train)
    assert refused.exit_code == 1
    print(refused.stderr)
    assert "line 1: which column is the text, and which the label?" in refused.stderr
    assert (
        "The first row has 'Id', 'Message', 'Category'; pass --text-column NAME and --label" in refused.stderr
    )
    assert not (tmp_path / "triage").exists()

    # She names them.
    columns = ("--text-column", "message", "--label-column", "category")
    trained = run(*train, *columns)
    assert trained.exit_code == 0, trained.stderr
    assert "elmokit: messages.csv: its columns are separated by semicolons" in trained.stderr.splitlines()
    assert "bug" in trained.stdout
    print(trained.stdout)
    assert (
        json.loads(run("evaluate", "messages.csv", "-m", "triage", *columns, "--json").stdout)["values"][
            "accuracy"
        ]
        > 0.9
    )

    # Each line that comes through the pipe is answered before the next one is written.
    with conversation("predict", "-m", "triage", "-", "--json") as ask:
        answers = [json.loads(ask(line)) for line in ("the money", "", "an error again")]
    print(answers)
    assert [answer["labels"] for answer in answers] == [["refund"], [], ["bug"]]
