"""A linguist wants the uses of *bank* in her sentences as a table and as a picture."""

import numpy as np
import pytest
from click.testing import CliRunner

from elmokit.cli import main

pandas = pytest.importorskip("pandas")

MONEY = ["He asked the bank for a loan.", "She owed the bank a lot of money.", "The bank lends money."]
RIVER = ["They sat on the bank of the river.", "Trees grow on the Bank of the stream.", "It left the bank."]


def test_a_table_and_a_picture_of_the_uses_of_bank(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [*MONEY, "", "No such word here.", *RIVER]
    (tmp_path / "mine.txt").write_text("\n".join(lines), encoding="utf-8")

    def elmokit(command):
        done = CliRunner().invoke(main, command.split())
        assert done.exit_code == 0, done.output
        return done

    elmokit("embed mine.txt -o bank.csv --word bank --layers 2")
    table = pandas.read_csv("bank.csv")
    assert list(table.columns[:6]) == ["line", "text", "word", "start", "end", "v0"]
    assert table["line"].tolist() == [1, 2, 3, 6, 7, 8]
    assert table["word"].tolist() == ["bank"] * 4 + ["Bank", "bank"]
    for use in table.itertuples():
        assert use.text[use.start : use.end] == use.word
    vectors = table.filter(regex=r"^v\d+$").to_numpy()
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit @ unit.T
    assert cosines[:3, :3].mean() > cosines[:3, 3:].mean()  # money is nearer to money than to rivers

    shown = elmokit("uses bank mine.txt --senses 2 --picture bank.png")
    assert "sense 2" in shown.stdout
    assert (tmp_path / "bank.png").read_bytes().startswith(b"\x89PNG")
