import gzip
import lzma
import sys

import pyarrow as pa
import pytest
import zstandard
from pyarrow import parquet

from elmokit.corpus import PrepareSettings, sources
from elmokit.corpus.sources import blocks, describe_file, find_files, read_documents
from elmokit.errors import DataError, MissingExtra
from elmokit.text import TokenizerSpec

SETTINGS = PrepareSettings(tokenizer=TokenizerSpec(name="whitespace"), split_sentences=False)
TEXT = b"one\ntwo\n\n \n\nthree\n"


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("a.txt", bytes),
        ("a.txt.gz", gzip.compress),
        ("a.xz", lzma.compress),
        ("a", zstandard.ZstdCompressor().compress),
    ],
)
def test_a_blank_line_ends_a_document(tmp_path, name, pack):
    (tmp_path / name).write_bytes(pack(TEXT))
    assert list(read_documents(tmp_path / name, SETTINGS)) == ["one\ntwo", "three"]


def test_long_text_without_blank_lines_is_cut_at_line_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "DOCUMENT_CHARACTERS", 10)
    (tmp_path / "a").write_text("12345\n67890\nabc\n")
    assert list(read_documents(tmp_path / "a", SETTINGS)) == ["12345\n67890", "abc"]


@pytest.mark.parametrize(("name", "pack"), [("a.jsonl", bytes), ("a.ndjson.gz", gzip.compress)])
def test_json_lines(tmp_path, name, pack):
    (tmp_path / name).write_bytes(pack(b'{"body": "x\\n\\ny", "n": 1}\n\n{"body": null}\n'))
    settings = PrepareSettings(tokenizer=SETTINGS.tokenizer, split_sentences=False, json_field="body")
    assert list(read_documents(tmp_path / name, settings)) == ["x\n\ny", ""]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "a"', r"line 2: '\{\"text\": \"a\"' is no JSON .*expected one object per line"),
        (
            '{"body": "a", "id": 3}',
            "line 2: found the fields body, id, expected .* field 'text'.*json_field",
        ),
        ('["a"]', r"line 2: expected one object per line, found '\[\"a\"\]'"),
        ('{"text": 5}', "line 2, field 'text' holds '5', expected text"),
    ],
)
def test_json_lines_that_cannot_be_read(tmp_path, line, message):
    (tmp_path / "a.jsonl").write_text(f'{{"text": "fine"}}\n{line}\n')
    with pytest.raises(DataError, match=message):
        list(read_documents(tmp_path / "a.jsonl", SETTINGS))


def test_parquet(tmp_path, monkeypatch):
    file = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"text": ["one\ntwo", None, "three"], "n": [1, 2, 3]}), file)
    assert list(read_documents(file, SETTINGS)) == ["one\ntwo", "", "three"]
    other = PrepareSettings(tokenizer=SETTINGS.tokenizer, split_sentences=False, parquet_column="body")
    with pytest.raises(DataError, match=r"has the columns text, n, expected 'body'.*parquet_column"):
        list(read_documents(file, other))
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        list(read_documents(file, SETTINGS))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"pip install 'elmokit\[arrow\]'"):
        list(read_documents(file, SETTINGS))


def test_globs_are_sorted_and_files_taken_once(tmp_path):
    for name in ("b.txt", "a.txt", "[c].txt", "d.md"):
        (tmp_path / name).write_text("x")
    (tmp_path / "folder.txt").mkdir()
    found = find_files([tmp_path / "b.txt", str(tmp_path / "*.txt"), tmp_path / "[c].txt"])
    assert [path.name for path in found] == ["b.txt", "[c].txt", "a.txt"]
    with pytest.raises(DataError, match=r"none\*\.txt: no file has this name or matches it"):
        find_files([tmp_path / "none*.txt"])
    with pytest.raises(DataError, match=r"fold\*: no file has this name or matches it"):
        find_files([tmp_path / "fold*"])
    with pytest.raises(DataError, match=r"is a folder; name the files in it, e\.g\. '.*/\*\.txt'"):
        find_files([tmp_path])


def test_blocks_go_over_files_and_end_with_a_document(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK_CHARACTERS", 6)
    (tmp_path / "a").write_text("12\n\n34\n\n56\n\n7")
    (tmp_path / "b").write_text("8\n\n9")
    assert list(blocks([tmp_path / "a", tmp_path / "b"], SETTINGS)) == [["12", "34", "56"], ["7", "8", "9"]]


def test_a_file_is_known_by_size_beginning_and_end(tmp_path):
    (tmp_path / "a").write_bytes(b"x" * 200_000)
    (tmp_path / "b").write_bytes(b"x" * 200_000)
    (tmp_path / "c").write_bytes(b"x" * 199_999 + b"y")
    a, b, c = (describe_file(tmp_path / name) for name in "abc")
    assert a["digest"] == b["digest"] != c["digest"]
    assert a["bytes"] == 200_000
