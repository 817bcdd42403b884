"""BM25, scores and files: by hand, and against other libraries."""

import math
from itertools import pairwise

import numpy as np
import pytest

from elmokit import DataError
from elmokit.search import (
    postings,
    read_documents,
    read_judgements,
    read_queries,
    read_run,
    score_run,
    write_run,
)
from elmokit.search.index_arrays import Arrays, save_arrays
from elmokit.search.passages import PassageSettings, cut_sentences, group_passages
from elmokit.search.postings import BM25, Postings, PostingsBuilder
from elmokit.search.quantised import Quantised
from elmokit.search.terms import make_term_finder


def postings_of(folder, passages):
    builder = PostingsBuilder()
    for terms in passages:
        builder.add(terms)
    folder.mkdir()
    save_arrays(folder, builder.arrays())
    return Postings.open(Arrays(folder), len(passages))


def test_bm25_by_hand(tmp_path):
    one = postings_of(tmp_path / "one", [["a", "b"], ["a", "a", "b", "c"]])
    (scores,) = BM25([one], [None]).scores(["c"])
    idf = math.log(1 + (2 - 1 + 0.5) / (1 + 0.5))
    assert scores.tolist() == pytest.approx([0, idf * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 4 / 3))])


def test_bm25_is_that_of_bm25s(tmp_path):
    bm25s = pytest.importorskip("bm25s")
    draw = np.random.default_rng(0)
    words = [f"w{number}" for number in range(30)]
    passages = [draw.choice(words, draw.integers(1, 20)).tolist() for _ in range(60)]
    retriever = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    retriever.index(passages, show_progress=False)
    query = ["w1", "w7", "w7", "unknown", "w20"]
    expected = retriever.get_scores([word for word in query if word != "unknown"])
    whole = BM25([postings_of(tmp_path / "whole", passages)], [None]).scores(query)[0]
    assert np.allclose(whole, 2.2 * expected, atol=1e-4)  # it leaves out the factor of k₁ + 1


def test_bm25_of_segments_and_deletions_is_that_of_what_is_left(tmp_path):
    draw = np.random.default_rng(1)
    passages = [draw.choice(list("abcdefgh"), draw.integers(1, 9)).tolist() for _ in range(40)]
    live = draw.random(40) < 0.7
    left = [passage for passage, alive in zip(passages, live, strict=True) if alive]
    (expected,) = BM25([postings_of(tmp_path / "left", left)], [None]).scores("ach")
    parts = [postings_of(tmp_path / "a", passages[:15]), postings_of(tmp_path / "b", passages[15:])]
    found = np.concatenate(BM25(parts, [live[:15], live[15:]]).scores("ach"))
    assert np.allclose(found[live], expected, atol=1e-6)
    assert not found[~live].any()


def test_common_terms_of_many_passages(tmp_path, monkeypatch):
    """They are added to what rarer terms find; the best passages stay the best, with the same scores."""
    draw = np.random.default_rng(2)
    passages = [["the", *draw.choice(list("abcdefghijklm"), 4).tolist()] for _ in range(60)]
    parts = [postings_of(tmp_path / "a", passages[:25]), postings_of(tmp_path / "b", passages[25:])]
    exact = np.concatenate(BM25(parts, [None, None]).scores(["the", "a", "b"]))
    monkeypatch.setattr(postings, "_MANY", 1)
    found = np.concatenate(BM25(parts, [None, None]).scores(["the", "a", "b"]))
    assert np.allclose(found[found > 0], exact[found > 0])
    assert found.argmax() == exact.argmax()
    assert 0 < (found > 0).sum() < len(passages)
    assert all(np.concatenate(BM25(parts, [None, None]).scores(["the"])) > 0)


def test_terms():
    find = make_term_finder("en")
    assert find("Running runners' RAN, 3.5%") == ["run", "runner", "ran", "3", "5"]
    assert make_term_finder("xx")("Running") == ["running"]
    assert make_term_finder("zh")("银行iPhone加息") == ["银", "行", "银行", "iphone", "加", "息", "加息"]


def test_quantised_vectors_are_near():
    vectors = np.random.default_rng(0).standard_normal((50, 64)).astype(np.float32)
    vectors[3] = 0
    stored = Quantised.of(vectors).floats()
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    assert np.abs(stored @ stored.T - unit @ unit.T).max() < 0.02
    assert not stored[3].any()


def test_passages_cover_everything():
    text = " ".join(f"This is sentence {number}." for number in range(50)) + " " + "x" * 5000
    sentences = cut_sentences(text, "en")
    assert "".join(text[start:end] for start, end in sentences).replace(" ", "") == text.replace(" ", "")
    passages = group_passages(sentences, PassageSettings(characters=100, overlap=2))
    assert passages[0][0] == 0
    assert passages[-1][1] == len(sentences)
    assert all(one[1] - 2 <= two[0] <= one[1] for one, two in pairwise(passages))


def test_a_short_rest_has_no_passage_of_its_own():
    sentences = [(0, 60), (61, 120), (121, 160)]
    assert group_passages(sentences, PassageSettings(characters=100)) == [(0, 3)]
    assert group_passages([*sentences, (161, 200)], PassageSettings(characters=100)) == [(0, 2), (1, 4)]


def test_scores_are_those_of_ir_measures():
    measures = pytest.importorskip("ir_measures")
    draw = np.random.default_rng(0)
    names = [f"d{number}" for number in range(300)]
    judged, run = {}, {}
    for number in range(20):
        query = f"q{number}"
        judged[query] = {
            str(name): int(draw.integers(0, 4)) for name in draw.choice(names, 15, replace=False)
        }
        ranking = draw.permutation(names)[:200]
        run[query] = [(str(name), float(200 - rank)) for rank, name in enumerate(ranking)]
    found = score_run(run, judged)
    wanted = [measures.nDCG @ 10, measures.AP, measures.R @ 100, measures.RR]
    expected = measures.calc_aggregate(
        wanted, judged, {query: dict(ranking) for query, ranking in run.items()}
    )
    assert [found.ndcg_10, found.map, found.recall_100, found.mrr] == pytest.approx(
        [expected[one] for one in wanted]
    )


def test_run_files(tmp_path):
    run = {"q1": [("b", 0.5), ("a", 0.5)], "q2": [("c", 1.0)]}
    write_run(tmp_path / "run.txt", run)
    assert (
        tmp_path / "run.txt"
    ).read_text() == "q1 Q0 b 1 2 elmokit\nq1 Q0 a 2 1 elmokit\nq2 Q0 c 1 1 elmokit\n"
    assert {
        query: [name for name, _ in found] for query, found in read_run(tmp_path / "run.txt").items()
    } == {
        "q1": ["b", "a"],
        "q2": ["c"],
    }
    (tmp_path / "bad.txt").write_text("q1 Q0 b 1\n")
    with pytest.raises(DataError, match=r"bad\.txt, line 1: 'q1 Q0 b 1', expected query, Q0, document"):
        read_run(tmp_path / "bad.txt")
    with pytest.raises(DataError, match="a run has no room for white space"):
        write_run(tmp_path / "no.txt", {"a query": [("d", 1.0)]})


def test_queries_and_judgements(tmp_path):
    (tmp_path / "q.jsonl").write_text('{"_id": 1, "text": "one"}\n{"id": "2", "text": "two"}\n')
    (tmp_path / "q.tsv").write_text("1\tone\n2\ttwo\n")
    assert read_queries(tmp_path / "q.jsonl") == read_queries(tmp_path / "q.tsv") == {"1": "one", "2": "two"}
    (tmp_path / "trec").write_text("1 0 d1 2\n1 0 d2 0\n")
    (tmp_path / "beir").write_text("query-id\tcorpus-id\tscore\n1\td1\t2\n1\td2\t0\n")
    assert (
        read_judgements(tmp_path / "trec") == read_judgements(tmp_path / "beir") == {"1": {"d1": 2, "d2": 0}}
    )
    with pytest.raises(DataError, match="expected a name, a tab and a query"):
        read_queries(tmp_path / "trec")


def test_documents_of_files(tmp_path):
    (tmp_path / "a.txt").write_text("one\n\ntwo\n")
    (tmp_path / "b.jsonl").write_text('{"_id": "x", "title": "T", "text": "three", "year": 3, "list": [1]}\n')
    (tmp_path / "c.csv").write_text('id,text,kind\n7,"four, five",k\n,six,k\n')
    folder = tmp_path / "folder"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "d.md").write_text("seven\neight\n")
    (folder / ".hidden").write_text("no")
    found = list(read_documents([tmp_path / name for name in ("a.txt", "b.jsonl", "c.csv", "folder")]))
    assert [(one.id, one.text) for one in found] == [
        ("a.txt:1", "one"),
        ("a.txt:3", "two"),
        ("x", "T\n\nthree"),
        ("7", "four, five"),
        ("c.csv:2", "six"),
        ("sub/d.md", "seven\neight"),
    ]
    assert found[2].metadata == {"title": "T", "year": 3}
    assert found[3].metadata == {"kind": "k"}
    with pytest.raises(DataError, match=r"expected a text in 'body', found .*; pass text_column=NAME"):
        list(read_documents([tmp_path / "b.jsonl"], text_column="body"))


def test_tables_are_read_as_everywhere(tmp_path, caplog):
    """Semicolons are recognised, names in upper and lower case; a row that does not fit is refused."""
    (tmp_path / "a.csv").write_text("ID;Message\n7;one, two\n")
    (found,) = read_documents([tmp_path / "a.csv"], text_column="message")
    assert (found.id, found.text) == ("7", "one, two")
    (tmp_path / "b.csv").write_text("id,text\n1,a\n2\n")
    with pytest.raises(DataError, match="line 3: expected 2 columns, found 1"):
        list(read_documents([tmp_path / "b.csv"]))
    (tmp_path / "empty.txt").write_text("\n")
    assert list(read_documents([tmp_path / "empty.txt"])) == []
    assert "empty.txt holds no documents" in caplog.text
