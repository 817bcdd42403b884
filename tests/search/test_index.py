"""An index finds what is in it, whatever was added, replaced, deleted or merged before."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from elmokit import BusyError, ConfigError, DataError, Document, Index
from elmokit.embed import Embedder
from elmokit.search import index as index_module
from elmokit.search import segment_writer
from elmokit.search import segments as segments_module
from elmokit.search.passages import PassageSettings
from elmokit.text import TokenizerSpec
from tests.tiny import tiny_bundle

TEXTS = [
    "The cat sat on the mat. It was a warm day.",
    "The bank raised its rates.",
    "They walked along the bank of the river.",
    "A dog chased the cat. The cat ran. The dog barked.",
    "Rates fell and the bank closed.",
]


@pytest.fixture(scope="module")
def embedder():
    return Embedder(tiny_bundle(), tokenizer=TokenizerSpec(name="rules", language="en"))


@pytest.fixture
def build(embedder, tmp_path):
    def build(documents=TEXTS, name="index", **settings):
        return Index.build(documents, tmp_path / name, model=embedder, language="en", **settings)

    return build


def answers(index, **how):
    found = index.search_many(["bank rates", "the cat", "a river", "dog"], 4, **how)
    return [[(hit.id, hit.score, hit.text) for hit in hits] for hits in found]


def test_words_are_found(build):
    index = build()
    assert [hit.id for hit in index.search("river", by=["bm25"])] == ["2"]
    assert {hit.id for hit in index.search("banks", by=["bm25"])} == {"1", "2", "4"}  # by their stems
    assert index.search("elephant", by=["bm25"]) == []


def test_a_document_is_found_by_itself(build):
    index = build()
    for number, text in enumerate(TEXTS):
        for by in ("bm25", "dense", "late"):
            first = index.search(text, 1, by=[by])[0]
            assert first.id == str(number)
            assert first.ranks == {by: 1}


@pytest.mark.parametrize("words", [True, False])
def test_how_it_came_about_does_not_matter(build, words):
    """Segments, replacements, deletions and merges give the answers of an index that was built at once."""
    at_once = build([Document(id=name, text=TEXTS[int(name)]) for name in "20314"], "once", words=words)
    index = build([Document(id="2", text=TEXTS[2]), Document(id="9", text="cat at the river")], words=words)
    index.add([Document(id="0", text="something old"), Document(id="3", text="the dog, before a change")])
    index.add([Document(id="0", text=TEXTS[0])])
    index.delete(["9", "never there"])
    for name in "314":
        index.add([Document(id=name, text=TEXTS[int(name)])])
    assert len(index) == 5
    expected = [sorted(one) for one in answers(at_once)]
    assert [sorted(one) for one in answers(index)] == expected
    index.merge()
    assert len(index._segments) == 1
    assert [sorted(one) for one in answers(index)] == expected
    assert [sorted(one) for one in answers(Index.open(index.path, model=index.embedder))] == expected
    assert {document.id for document in index} == set("01234")
    index.check()


def test_many_small_additions_are_merged(build, monkeypatch):
    monkeypatch.setattr(segment_writer, "_MOST_SEGMENTS", 3)
    index = build([])
    for number in range(9):
        index.add([Document(id=str(number), text=f"the cat number {number}")])
    assert len(index._segments) <= 3
    assert len(index) == 9
    assert index.search("number 7", 1)[0].id == "7"
    named = {entry.name for entry in index._manifest.entries} | {"index.json"}
    assert {path.name for path in index.path.iterdir()} == named


def test_large_segments_are_left_alone(build, monkeypatch):
    """Merging rewrites a document a few times, however many there are, and takes bounded memory."""
    monkeypatch.setattr(segment_writer, "_MOST_SEGMENTS", 2)
    monkeypatch.setattr(segment_writer, "_LARGE", 3)
    monkeypatch.setattr(index_module, "_SEGMENT_CHARACTERS", 1)
    index = build([f"the cat number {number}" for number in range(9)])
    assert [len(segment.passages) for segment in index._segments] == [3, 3, 3]
    assert [document.id for document in index] == list("012345678")
    assert index.search("number 7", 1)[0].id == "7"


def test_graph_of_neighbours(build, monkeypatch):
    exact = answers(build(), by=["dense"])
    monkeypatch.setattr(segments_module, "_FEW", 2)
    assert answers(build(name="by int8 first"), by=["dense"]) == exact
    monkeypatch.setattr(segments_module, "GRAPH_FROM", 2)
    with_graph = build(name="graph")
    assert (next(with_graph.path.glob("segment-*")) / "graph.usearch").exists()
    assert answers(with_graph, by=["dense"]) == exact
    assert [hit.id for hit in with_graph.search("bank", by=["dense"], where={"year": 1})] == []


def test_adding_again_changes_nothing(build):
    index = build()
    files = sorted(path.name for path in index.path.iterdir())
    report = index.add(TEXTS)
    assert (report.added, report.replaced, report.unchanged) == (0, 0, 5)
    assert sorted(path.name for path in index.path.iterdir()) == files
    assert "5 unchanged" in str(report)


def test_answers_do_not_depend_on_threads(build):
    queries = ["bank rates", "the cat sat", "a dog", "warm river day"]
    found = []
    threads = torch.get_num_threads()
    for number in (1, 3):
        torch.set_num_threads(number)
        found.append(build(name=f"{number}").search_many(queries, explain=True))
    torch.set_num_threads(threads)
    assert found[0] == found[1]


def test_answers_do_not_depend_on_batches(build, embedder):
    queries = ["bank rates", "the cat sat", "a dog", "warm river day"]
    index = build()
    together = index.search_many(queries, explain=True)
    assert [index.search(query, explain=True) for query in queries] == together
    small = Embedder(embedder.bundle, tokenizer=embedder.tokenizer_spec, batch_tokens=3)
    assert Index.open(index.path, model=small).search_many(queries, explain=True) == together


def test_equal_scores_keep_the_order_of_adding(build):
    index = build(["the same text"] * 30)
    assert [hit.id for hit in index.search("same text", 30)] == [str(number) for number in range(30)]


def test_filters(build):
    documents = [
        Document(id=str(year), text="the cat", metadata={"year": year, "name": f"n{year % 2}", "good": True})
        for year in range(1990, 2000)
    ]
    index = build([*documents, Document(id="none", text="the cat")])

    def found(where):
        return sorted(hit.id for hit in index.search("cat", 20, where=where))

    assert found({"year": 1991}) == ["1991"]
    assert found({"year": [1991, 1993], "name": "n1"}) == ["1991", "1993"]
    assert found({"year": {"least": 1998}}) == ["1998", "1999"]
    assert found({"year": {"least": 1991, "most": 1992}, "good": True}) == ["1991", "1992"]
    assert found({"colour": "red"}) == []
    assert index.search("cat", 1, where={"year": 1991})[0].metadata == documents[1].metadata
    with pytest.raises(
        ConfigError, match="the filter of 'year' has \\['from'\\], expected 'least' or 'most'"
    ):
        found({"year": {"from": 3}})


def test_words_are_matched_by_meaning(build):
    hit = build().search(TEXTS[1], 1, explain=True)[0]
    assert hit.text == TEXTS[1]
    assert [match.found for match in hit.matches] == [match.word for match in hit.matches]
    assert [match.word for match in hit.matches] == ["bank", "raised", "its", "rates"]  # "The" is everywhere
    for match in hit.matches:
        assert hit.text[match.start : match.end] == match.found
        assert match.cosine == pytest.approx(1, abs=0.001)


def test_long_documents_have_passages(build):
    sentences = [f"Sentence number {number} speaks of nothing." for number in range(40)]
    sentences[30] = "Here is an elephant."
    index = build([" ".join(sentences)], passages=PassageSettings(characters=100, overlap=1))
    hit = index.search("elephant", by=["bm25"])[0]
    assert "elephant" in hit.text
    assert len(hit.text) < 160
    assert index["0"].text[hit.start :].startswith(hit.text)


def test_one_writer(build):
    index = build()
    waiting = "import sys; from elmokit.base import locked; from pathlib import Path\n"
    waiting += "with locked(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", waiting, index.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"held\n"
        for change in (lambda: index.add(["x"]), lambda: index.delete(["1"]), index.merge):
            with pytest.raises(BusyError, match="is being written by process"):
                change()
        assert index.search("bank", 1)  # reading goes on
        other.stdin.close()
    index.add([Document(id="x", text="new")])


def test_another_process_sees_what_was_written(build, embedder):
    index = build()
    other = Index.open(index.path, model=embedder)
    other.delete(["1"])
    assert "1" in index
    index.add([Document(id="new", text="something new")])  # sees it
    assert "1" not in index
    assert "new" in index


def test_a_reader_goes_on_while_another_merges(build, embedder, monkeypatch):
    """Also if the other one deletes a file that the reader has not opened yet."""
    monkeypatch.setattr(segments_module, "GRAPH_FROM", 2)
    monkeypatch.setattr(segments_module, "_FEW", 2)
    index = build()
    index.add([Document(id="new", text="something new")])
    reader = Index.open(index.path, model=embedder)
    index.merge()
    assert answers(reader, by=["dense"]) == answers(index, by=["dense"])


@pytest.mark.parametrize("name", ["texts", "vectors", "words", "posting-counts", "passages", "id-hashes"])
def test_a_damaged_file_is_named(build, name):
    index = build()
    path = next(index.path.glob(f"segment-*/{name}.npy"))
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(DataError, match=f"{name}.npy has changed since it was written"):
        Index.open(index.path)
    path.write_bytes(content[:-1])
    with pytest.raises(DataError, match=f"{name}.npy has {len(content) - 1:,} bytes, expected"):
        Index.open(index.path)
    path.unlink()
    with pytest.raises(DataError, match=f"{name}.npy is missing"):
        Index.open(index.path)


def test_messages(build, tmp_path, embedder):
    with pytest.raises(DataError, match=r"has no index\.json, expected a search index"):
        Index.open(tmp_path)
    index = build(words=False)
    with pytest.raises(ConfigError, match="built without the vectors of words"):
        index.search("x", by=["late"])
    with pytest.raises(ConfigError, match="retrievers are bm25, dense, late, found \\['bm26'\\]"):
        index.search("x", by=["bm26"])
    with pytest.raises(ConfigError, match="an index with another choice of word vectors"):
        build(words=True)
    other = Embedder(tiny_bundle(), tokenizer="whitespace")
    with pytest.raises(ConfigError, match="was built with another model"):
        Index.open(index.path, model=other).search("x")
    with pytest.raises(DataError, match="expected a text or a Document, found int 3"):
        index.add([3])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(DataError, match="exists and is no index"):
        Index.build([], tmp_path / "full", model=embedder, language="en")


def test_a_temporary_index_is_deleted(embedder):
    with Index.build(TEXTS, model=embedder, language="en") as index:
        assert index.path.exists()
    assert not index.path.exists()


@pytest.mark.parametrize("moment", range(4))
def test_killed_while_writing(build, embedder, monkeypatch, moment):
    """A writer that stops anywhere before the manifest is replaced changes nothing."""
    index = build()
    before = answers(index)
    names = ["write_segment", "entry_of", "mark_deleted"]

    class Killed(BaseException):
        pass

    def stop(*_, **__):
        raise Killed

    if moment < 3:
        monkeypatch.setattr(index_module, names[moment], stop)
    else:
        monkeypatch.setattr("elmokit.search.manifest.Manifest.write", stop)
    with pytest.raises(Killed):
        index.add([Document(id="0", text="new"), Document(id="new", text="the new one")])
    monkeypatch.undo()
    again = Index.open(index.path, model=embedder)
    assert answers(again) == before
    report = again.add([Document(id="0", text="new"), Document(id="new", text="the new one")])
    assert (report.added, report.replaced) == (1, 1)
    assert len(again) == 6


def test_vectors(build):
    index = build()
    names, vectors = index.vectors()
    assert names == list("01234")
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_an_interruption_says_what_is_kept(build, monkeypatch):
    monkeypatch.setattr(index_module, "_SEGMENT_CHARACTERS", 1)
    committed = index_module.entry_of

    def second_is_interrupted(folder):
        if folder.name > "segment-000001":
            raise KeyboardInterrupt
        return committed(folder)

    monkeypatch.setattr(index_module, "entry_of", second_is_interrupted)
    with pytest.raises(KeyboardInterrupt, match=r"1 document kept in .*: index the same ones again"):
        build()
    monkeypatch.setattr(index_module, "entry_of", committed)
    assert build().report.unchanged == 1
