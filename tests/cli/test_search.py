"""The commands of search: documents in, an index, answers, scores."""

import json

import pytest

from elmokit.formats import save_model
from tests.tiny import tiny_bundle


@pytest.fixture
def index(run, tmp_path):
    """An index of three documents in `tmp_path`, built by the command."""
    save_model(tiny_bundle(), tmp_path / "model")
    documents = [
        {"id": "cat", "text": "The cat sat on the mat.", "year": 1999},
        {"id": "bank", "title": "Rates", "text": "The bank raised its rates.", "year": 2001},
        {"id": "dog", "text": "A dog ran along the river. It barked. It ran home.", "year": 2001},
    ]
    path = tmp_path / "documents.jsonl"
    path.write_text("\n".join(map(json.dumps, documents)) + "\n")
    folder = str(tmp_path / "index")
    cut = ["--passage", "20", "--overlap", "0"]
    run("index", str(path), "-o", folder, "-m", str(tmp_path / "model"), "--language", "en", *cut)
    return folder


def hits(found):
    assert found.exit_code == 0, found.output
    return [json.loads(line) for line in found.stdout.splitlines()]


def test_search(run, index):
    shown = run("search", index, "a bank and its rates").stdout
    assert shown.splitlines()[0].split()[:2] == ["1.", "bank"]
    assert "bank → bank " in shown
    (first, *_) = hits(run("search", index, "a cat", "--by", "bm25", "--json"))
    assert (first["id"], first["text"]) == ("cat", "The cat sat on the mat.")
    found = hits(run("search", index, "the bank", "--where", "year=1999", "--json"))
    assert [hit["id"] for hit in found] == ["cat"]


def test_passages_are_cut(run, index):
    (first, *_) = hits(run("search", index, "home", "--by", "bm25", "--json"))
    assert (first["id"], first["text"], first["start"]) == ("dog", "It barked. It ran home.", 27)


def test_delete_and_merge(run, index):
    run("index", "-o", index, "--delete", "cat", "--merge")
    found = hits(run("search", index, "the cat", "--json"))
    assert {hit["id"] for hit in found} == {"bank", "dog"}


def test_evaluate_search(run, index, tmp_path):
    (tmp_path / "queries.tsv").write_text("q1\ta bank\nq2\tthe cat\n")
    (tmp_path / "qrels.txt").write_text("q1 0 bank 1\nq2 0 cat 2\n")
    files = [str(tmp_path / "queries.tsv"), str(tmp_path / "qrels.txt")]
    out = str(tmp_path / "run.txt")
    (scores,) = hits(run("evaluate-search", index, *files, "--by", "bm25", "-o", out, "--json"))
    assert scores == {"ndcg_10": 1.0, "map": 1.0, "recall_100": 1.0, "mrr": 1.0, "queries": 2}
    assert hits(run("evaluate-search", index, *files, "--run", out, "--json")) == [scores]
