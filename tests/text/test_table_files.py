"""A table is a text by one of its columns."""

import gzip

import pytest
from click.testing import CliRunner

from elmokit import DataError, TextColumn
from elmokit.cli import main
from elmokit.text import read_texts

TABLES = {
    "commas.csv": 'id,Message\n1,"Hello, ""you""."\n2,Two words\n',
    "semicolons.csv": 'Message;id\n"Hello, ""you"".";1\nTwo words;2\n',
    "tabs.tsv": 'id\tmessage \n1\tHello, "you".\n\n2\tTwo words\n',
    "lines.jsonl": '{"id": 1, "message": "Hello, \\"you\\"."}\n\n{"id": 2, "message": "Two words"}\n',
}


@pytest.mark.parametrize("name", TABLES)
def test_the_same_column_of_each_format(name, tmp_path, caplog):
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(TABLES[name].encode()))
    assert list(read_texts(TextColumn(packed, "message"))) == ['Hello, "you".', "Two words"]
    assert list(read_texts(TextColumn(packed, "message"), tokens=True))[1] == ["Two", "words"]
    assert ("separated by semicolons" in caplog.text) == (name == "semicolons.csv")


def test_a_table_without_header_has_numbers(tmp_path):
    (tmp_path / "t.csv").write_text("1,first\n2,second\n")
    assert list(read_texts(TextColumn(tmp_path / "t.csv", "2"))) == ["first", "second"]
    (tmp_path / "empty.csv").write_text("")
    assert list(read_texts(TextColumn(tmp_path / "empty.csv"))) == []


@pytest.mark.parametrize(
    ("name", "content", "column", "message"),
    [
        (
            "t.csv",
            "id,body\n1,a\n",
            "text",
            "text_column='text' is not one of its.*'id', 'body'; pass",
        ),
        ("t.csv", "text,text\na,b\n", "text", "text_column='text' is the name of several columns"),
        ("t.csv", "id,text\n1,a\n2\n", "text", "line 3: expected 2 columns, found 1, '2'"),
        ("t.tsv", "a\tb\n", "3", "text_column='3' is not one of its columns"),
        ("t.jsonl", '{"id": 1, "body": "x"}\n', "text", "line 1: expected a string .*, found 'id', 'body'"),
        ("t.jsonl", "[1]\n", "text", "line 1: expected one object per line"),
        ("t.jsonl", "{\n", "text", "line 1: '{' is no JSON"),
        ("t.txt", "a\n", "text", "is no table; pass a .csv, .tsv or .jsonl file"),
        ("t.csv", f"id,{'long ' * 9}\n", "text", "'id', 'long long long long long lo…'; pass"),
    ],
)
def test_what_is_wrong_is_said(name, content, column, message, tmp_path):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message):
        list(read_texts(TextColumn(tmp_path / name, column)))


def test_commands_do_not_take_rows_for_sentences(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("id,message\n1,The bank rose.\n2,He left.\n")
    (tmp_path / "t.txt").write_text("The bank rose.\n")

    def scored(*given):
        return CliRunner().invoke(main, ["score", *given])

    refused = scored("t.csv")
    assert refused.exit_code == 1
    assert "--text-column text is not one of its columns. The first row has 'id', 'message'" in refused.stderr
    assert len(scored("t.csv", "--text-column", "message").stdout.splitlines()) == 2
    assert len(scored("t.csv", "--lines").stdout.splitlines()) == 3
    for wrong in (["t.txt"], ["-t", "a"], ["t.csv", "--lines"]):
        assert scored(*wrong, "--text-column", "message").exit_code == 2
