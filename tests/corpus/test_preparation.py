import gc
import json
import random
import sys
from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmokit.corpus import (
    PreparedCorpus,
    PrepareSettings,
    prepare_corpus,
    selection,
    shards,
    sources,
    type_table,
)
from elmokit.corpus.corpus_report import draw_lengths
from elmokit.text import TokenizerSpec, Vocabulary, default_spec

LINES = {"tokenizer": TokenizerSpec(name="whitespace"), "split_sentences": False}
EVERYTHING = {**LINES, "min_tokens": 1, "min_count": 1, "heldout_share": 0.0}


@pytest.fixture
def prepare(tmp_path):
    """Prepare a text by the given settings."""

    def prepare(text, *, workers=1, out="corpus", **chosen):
        (tmp_path / "text.txt").write_text(text)
        return prepare_corpus(
            [tmp_path / "text.txt"], tmp_path / out, PrepareSettings(**chosen), workers=workers
        )

    return prepare


def sentences(corpus, part="train"):
    """All sentences as they were spelled, boundaries too."""
    found = []
    for shard in getattr(corpus, part):
        assert shard.starts[0] == 0
        assert shard.starts[-1] == len(shard.tokens) == shard.num_tokens
        assert len(shard.starts) == shard.num_sentences + 1
        spelled = corpus.spellings(np.asarray(shard.tokens))
        found += [spelled[start:end] for start, end in pairwise(shard.starts.tolist())]
    return found


def documents(corpus, part="train"):
    """All documents, each a list of its sentences without their boundaries."""
    found = []
    spelled = iter(sentences(corpus, part))
    for shard in getattr(corpus, part):
        assert shard.documents.dtype == np.int64
        assert shard.documents[0] == 0
        assert shard.documents[-1] == shard.num_sentences
        assert len(shard.documents) == shard.num_documents + 1
        sizes = np.diff(shard.documents)
        assert (sizes > 0).all()
        found += [[next(spelled)[1:-1] for _ in range(size)] for size in sizes.tolist()]
    assert next(spelled, None) is None
    return found


def test_by_hand(prepare):
    corpus = prepare("b a b\nc b\n\na d e b a\n", **LINES, min_count=2, heldout_share=0.0)
    assert corpus.vocabulary.tokens == ("<S>", "</S>", "<UNK>", "b", "a")
    assert corpus.counts.tolist() == [3, 3, 3, 4, 3]
    assert corpus.counts.dtype == np.int64
    assert corpus.num_types == 8
    assert sorted(corpus.spellings(np.arange(5, 8))) == ["c", "d", "e"]
    assert sentences(corpus) == [
        ["<S>", "b", "a", "b", "</S>"],
        ["<S>", "c", "b", "</S>"],
        ["<S>", "a", "d", "e", "b", "a", "</S>"],
    ]
    assert corpus.train[0].tokens[:5].tolist() == [0, 3, 4, 3, 1]
    assert corpus.train[0].tokens.dtype == np.int32
    assert corpus.train[0].starts.tolist() == [0, 5, 9, 16]
    assert corpus.train[0].documents.tolist() == [0, 2, 3]
    assert corpus.heldout == []
    assert corpus.report == {
        "documents": 2,
        "sentences": 3,
        "tokens": 10,
        "characters": 9 + 9,
        "types": 5,
        "vocabulary_size": 5,
        "coverage": pytest.approx(0.7),
        "train": {"sentences": 3, "tokens": 10, "oov_tokens": 3, "oov_rate": 0.3},
        "heldout": {"sentences": 0, "tokens": 0, "oov_tokens": 0, "oov_rate": None},
        "dropped": {"too_short": 0, "too_long": 0, "duplicates": 0, "empty_records": 0, "boundary_marks": 0},
        "dropped_characters": 0,
        "length_histogram": [0, 0, 1, 1, 0, 1],
    }


def test_vocabulary_by_frequency_then_spelling(prepare):
    corpus = prepare("é b a Z z z é b\n", **EVERYTHING | {"min_count": 2})
    assert corpus.vocabulary.tokens[3:] == ("b", "z", "é")
    corpus = prepare("é b a Z z z é b\n", out="two", **EVERYTHING, max_vocabulary=5)
    assert corpus.vocabulary.tokens[3:] == ("b", "z")
    assert corpus.num_types == 5 + 3


def test_sentences_are_split_and_cut_by_language(prepare):
    corpus = prepare("Dr. Who can't pay.  He left.\n", tokenizer=default_spec("en"), min_count=1)
    assert sentences(corpus) == [
        ["<S>", "Dr.", "Who", "ca", "n't", "pay", ".", "</S>"],
        ["<S>", "He", "left", ".", "</S>"],
    ]
    assert corpus.tokenizer == corpus.settings.tokenizer == default_spec("en")


def test_wrapped_lines_are_joined_and_paragraphs_are_not(prepare):
    long = "word " * 30 + "end."
    text = f"It was\nlate. We left.\n\nA Heading\n{long} Next one\n"
    corpus = prepare(text, tokenizer=default_spec("en"), min_count=1, min_tokens=1)
    words = [" ".join(sentence[1:-1]) for sentence in sentences(corpus)]
    assert words == ["It was late .", "We left .", "A Heading", "word " * 30 + "end .", "Next one"]


def test_short_and_long_sentences_are_dropped_and_counted(prepare):
    text = "a\nb b\nc c c c\nd d d\n" + "x" * 301 + "\n<S> e e </S>\n"
    corpus = prepare(text, **EVERYTHING | {"min_tokens": 2}, max_tokens=3)
    assert [sentence[1:-1] for sentence in sentences(corpus)] == [["b", "b"], ["d", "d", "d"], ["e", "e"]]
    assert corpus.report["dropped"] == {
        "too_short": 1,
        "too_long": 2,
        "duplicates": 0,
        "empty_records": 0,
        "boundary_marks": 2,
    }
    assert corpus.report["dropped_characters"] == len("a") + len("c c c c") + 301
    assert corpus.report["types"] == 3  # not those of what was dropped
    assert corpus.num_types == 6


def test_unknown_in_the_text_is_the_unknown_row(prepare):
    corpus = prepare("a <UNK> a b <UNK>\n", **LINES, min_count=2)
    assert corpus.vocabulary.tokens == ("<S>", "</S>", "<UNK>", "a")
    assert corpus.train[0].tokens.tolist() == [0, 3, 2, 3, 4, 2, 1]
    assert corpus.counts.tolist() == [1, 1, 3, 2]
    assert corpus.report["train"]["oov_tokens"] == 3


def test_duplicates(prepare, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK_CHARACTERS", 10)
    monkeypatch.setattr(selection, "_HASHES_AT_ONCE", 2)
    text = "a b\nc  d\na b\n\nb a\nc d\n\nx\n\na b\n"
    corpus = prepare(text, **EVERYTHING, deduplicate=True)
    assert [sentence[1:-1] for sentence in sentences(corpus)] == [["a", "b"], ["c", "d"], ["b", "a"], ["x"]]
    assert corpus.report["dropped"]["duplicates"] == 3
    assert documents(corpus) == [[["a", "b"], ["c", "d"]], [["b", "a"]], [["x"]]]  # the last one is empty
    assert corpus.counts.tolist() == [4, 4, 0, 2, 2, 1, 1, 1]
    assert corpus.vocabulary.tokens[3:] == ("a", "b", "c", "d", "x")


def test_whole_documents_are_held_out(prepare, monkeypatch):
    text = "\n\n".join(f"d{number} one\nd{number} two" for number in range(40))
    corpus = prepare(text, **EVERYTHING | {"heldout_share": 0.05})
    held = [sentence[1] for sentence in sentences(corpus, "heldout")]
    assert held == ["d10", "d10", "d30", "d30"]  # one of 20, the middle one
    assert documents(corpus) == [
        [[f"d{number}", "one"], [f"d{number}", "two"]] for number in range(40) if number not in (10, 30)
    ]
    assert documents(corpus, "heldout") == [
        [[f"d{number}", "one"], [f"d{number}", "two"]] for number in (10, 30)
    ]
    assert "d10" not in corpus.vocabulary  # only the training part is counted
    assert corpus.report["heldout"] == {"sentences": 4, "tokens": 8, "oov_tokens": 4, "oov_rate": 0.5}
    monkeypatch.setattr(selection, "_HELDOUT_TOKENS", 4)
    fewer = prepare(text, out="fewer", **EVERYTHING | {"heldout_share": 0.05})
    assert [sentence[1] for sentence in sentences(fewer, "heldout")] == ["d20", "d20"]


@pytest.mark.parametrize(("documents", "held"), [(9, []), (10, ["d5"])])
def test_of_few_documents_one_is_held_out_and_of_very_few_none(prepare, documents, held):
    text = "\n\n".join(f"d{number} one" for number in range(documents))
    corpus = prepare(text, **EVERYTHING | {"heldout_share": 0.005})
    assert [sentence[1] for sentence in sentences(corpus, "heldout")] == held


def test_where_documents_start(tmp_path):
    (tmp_path / "a.txt").write_text("One. Two.\nThree.\n\n \nFour.\n")
    (tmp_path / "b.txt").write_text("Five.\n")
    (tmp_path / "c.jsonl").write_text('{"text": "Six.\\n\\nSeven."}\n{"text": null}\n{"text": "Eight."}\n')
    files = [tmp_path / name for name in ("a.txt", "b.txt", "c.jsonl")]
    plain = PrepareSettings(**EVERYTHING)
    corpus = prepare_corpus(files, tmp_path / "lines", plain, workers=1)
    assert [[" ".join(sentence) for sentence in document] for document in documents(corpus)] == [
        ["One. Two.", "Three."],
        ["Four."],
        ["Five."],
        ["Six.", "Seven."],
        ["Eight."],
    ]
    running = PrepareSettings(tokenizer=default_spec("en"), min_count=1, heldout_share=0.0)
    corpus = prepare_corpus(files, tmp_path / "running", running, workers=1)
    assert [shard.documents.tolist() for shard in corpus.train] == [[0, 3, 4, 5, 7, 8]]


def test_given_heldout_text(prepare, tmp_path):
    (tmp_path / "held.txt").write_text("a new\na new\n")
    corpus = prepare(
        "a b\n\n" * 20, **EVERYTHING | {"heldout_share": 0.1}, heldout=[tmp_path / "held*"], deduplicate=True
    )
    assert sentences(corpus) == [["<S>", "a", "b", "</S>"]]
    assert sentences(corpus, "heldout") == [["<S>", "a", "new", "</S>"]] * 2  # duplicates are let be
    assert corpus.report["heldout"]["oov_rate"] == 0.5
    assert corpus.counts.tolist() == [1, 1, 0, 1, 1]


def test_given_vocabulary(prepare, tmp_path):
    rows = ["<S>", "</S>", "<UNK>", "unseen", "b", "a", "b"]  # a word on two lines has the later id
    Vocabulary(rows).save(tmp_path / "vocabulary.txt")
    corpus = prepare("a b c a\n", **EVERYTHING, vocabulary=tmp_path / "vocabulary.txt")
    assert corpus.vocabulary.tokens == tuple(rows)
    assert corpus.train[0].tokens.tolist() == [0, 5, 6, 7, 5, 1]
    assert corpus.counts.tolist() == [1, 1, 1, 0, 0, 2, 1]
    assert corpus.spellings(np.array([3, 7])) == ["unseen", "c"]
    assert corpus.num_types == 8
    assert corpus.report["types"] == 3


def test_finished_is_opened_at_once_and_moved_files_are_the_same(prepare, tmp_path, monkeypatch):
    corpus = prepare("a b\n", **EVERYTHING)
    (tmp_path / "text.txt").rename(tmp_path / "moved.txt")
    monkeypatch.setattr("elmokit.corpus.preparation.write_chunk", None)
    again = prepare_corpus([tmp_path / "moved.txt"], tmp_path / "corpus", PrepareSettings(**EVERYTHING))
    assert again.fingerprint == corpus.fingerprint == PreparedCorpus(tmp_path / "corpus").fingerprint
    assert again.settings == PrepareSettings(**EVERYTHING)
    assert not (tmp_path / "corpus.part").exists()


def test_fingerprints_tell_texts_and_settings_apart(prepare):
    made = [
        prepare("a b\n", **EVERYTHING),
        prepare("a b\n", out="same", **EVERYTHING),
        prepare("a c\n", out="text", **EVERYTHING),
        prepare("a b\n", out="settings", **EVERYTHING, max_tokens=7),
    ]
    first, same, *others = [corpus.fingerprint for corpus in made]
    assert first == same
    assert len({first, *others}) == 3


def content(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_workers_do_not_change_a_byte(prepare, tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK_CHARACTERS", 300)
    words = random.Random(0)
    text = "\n\n".join(" ".join(f"w{words.randint(0, 99) ** 2}" for _ in range(12)) for _ in range(120))
    for workers in (1, 2, 3):
        prepare(text, workers=workers, out=f"{workers}", **LINES, deduplicate=True)
    assert content(tmp_path / "1") == content(tmp_path / "2") == content(tmp_path / "3")


WORDS = st.sampled_from(["a", "b", "é", "鱼", "zz", "<UNK>", *"cdefgh"])


@settings(max_examples=20)
@given(
    texts=st.lists(st.lists(st.lists(WORDS, min_size=1, max_size=5), min_size=1, max_size=3), min_size=1),
    min_count=st.integers(1, 2),
    max_vocabulary=st.integers(4, 9),
    entries=st.sampled_from([1, 5, 1000]),
    block=st.sampled_from([1, 30, 1000]),
)
def test_like_counting_in_memory(tmp_path_factory, texts, min_count, max_vocabulary, entries, block):
    folder = tmp_path_factory.mktemp("corpus")
    lines = [" ".join(sentence) for document in texts for sentence in document]
    text = "\n\n".join("\n".join(" ".join(sentence) for sentence in document) for document in texts)
    (folder / "text").write_text(text)
    counts = Counter(word for line in lines for word in line.split() if word != "<UNK>")
    frequent = sorted(
        (word for word in counts if counts[word] >= min_count), key=lambda word: (-counts[word], word)
    )
    expected = frequent[: max_vocabulary - 3]
    chosen = PrepareSettings(**EVERYTHING | {"min_count": min_count, "max_vocabulary": max_vocabulary})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "BLOCK_CHARACTERS", block)
        patch.setattr(type_table, "ENTRIES_AT_ONCE", entries)
        patch.setattr(shards, "SHARD_TOKENS", 10)
        if not expected:
            return
        corpus = prepare_corpus([folder / "text"], folder / "corpus", chosen, workers=1)
    assert list(corpus.vocabulary.tokens[3:]) == expected
    assert corpus.counts[3:].tolist() == [counts[word] for word in expected]
    assert corpus.counts[:2].tolist() == [len(lines)] * 2
    assert corpus.counts[2] == sum(len(line.split()) for line in lines) - corpus.counts[3:].sum()
    assert documents(corpus) == texts
    every = corpus.spellings(np.arange(corpus.num_types))
    assert len(set(every)) == len(every)
    assert set(every) == {"<S>", "</S>", "<UNK>", *counts}


NUMBERED = st.lists(st.integers(0, 5).map(lambda number: f"w{number}"), min_size=1, max_size=4)


@settings(max_examples=20)
@given(
    texts=st.lists(st.lists(NUMBERED, min_size=1, max_size=4), min_size=1, max_size=30),
    shard_tokens=st.sampled_from([1, 20, 1000]),
    block=st.sampled_from([1, 30, 1000]),
)
def test_documents_come_back_without_duplicates_and_held_out(tmp_path_factory, texts, shard_tokens, block):
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "text").write_text("\n\n".join("\n".join(map(" ".join, document)) for document in texts))
    seen = set()
    unique = [
        [sentence for sentence in document if (key := tuple(sentence)) not in seen and not seen.add(key)]
        for document in texts
    ]
    chosen = PrepareSettings(**EVERYTHING | {"heldout_share": 0.5, "deduplicate": True})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "BLOCK_CHARACTERS", block)
        patch.setattr(shards, "SHARD_TOKENS", shard_tokens)
        corpus = prepare_corpus([folder / "text"], folder / "corpus", chosen, workers=1)
    assert documents(corpus) == [document for document in unique[::2] if document]
    assert documents(corpus, "heldout") == [document for document in unique[1::2] if document]


def test_spellings_are_let_go_at_once(prepare):
    def tables():
        return sum(type(thing) is defaultdict for thing in gc.get_objects())

    gc.collect()
    gc.disable()  # a table that waits for it would add up with others to the size of the corpus
    try:
        before = tables()
        prepare("a b\n", **EVERYTHING)
        assert tables() == before
    finally:
        gc.enable()


def test_shards_stay_few(prepare, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK_CHARACTERS", 1)
    monkeypatch.setattr(shards, "SHARD_TOKENS", 1)
    corpus = prepare("a b\n\n" * 100, **EVERYTHING)
    assert len(corpus.train) <= 64
    assert len(sentences(corpus)) == 100


def test_report_is_written_and_drawn(prepare, tmp_path, monkeypatch):
    corpus = prepare("a b\nc d e\n", **EVERYTHING)
    assert json.loads((tmp_path / "corpus" / "corpus.json").read_text())["report"] == corpus.report
    assert draw_lengths(corpus) == f"sentence lengths: {corpus.path / 'lengths.png'}"
    assert (corpus.path / "lengths.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert draw_lengths(corpus).startswith("no picture: ")
    assert "pip install 'elmokit[plot]'" in draw_lengths(corpus)
