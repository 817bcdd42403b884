import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from elmokit.corpus import PreparedCorpus, PrepareSettings, preparation, prepare_corpus, sources
from elmokit.errors import ConfigError, DataError
from elmokit.text import TokenizerSpec, Vocabulary

CHOSEN = {"tokenizer": TokenizerSpec(name="whitespace"), "split_sentences": False, "min_count": 1}
TEXT = "\n\n".join(f"w{number} w{number % 7} of the text" for number in range(60))


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture
def out(tmp_path):
    return tmp_path / "corpus"


def run(text, out, **chosen):
    return prepare_corpus([text], out, PrepareSettings(**CHOSEN | chosen), workers=1)


def content(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# The process kills itself as `kill -9` does, at a place that can be chosen.
_KILLED = """
import os, signal, sys
from elmokit.corpus import PrepareSettings, chunks, preparation, prepare_corpus, sources
from elmokit.text import TokenizerSpec

name, calls, text, out, workers = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4], int(sys.argv[5])
home = chunks if name == "write_bytes" else preparation
sources.BLOCK_CHARACTERS = 200
plain = getattr(home, name)
parent = os.getpid()

def killed(*arguments):
    global calls
    calls -= 1
    if calls == 0:
        os.kill(parent, signal.SIGKILL)
        signal.pause()  # a worker: it ends with its parent
    return plain(*arguments)

setattr(home, name, killed)
settings = PrepareSettings(tokenizer=TokenizerSpec(name="whitespace"), split_sentences=False, min_count=1)
prepare_corpus([text], out, settings, workers=workers)
"""


@pytest.mark.parametrize(
    ("function", "calls", "workers"),
    [
        ("write_bytes", 3, 1),  # in the midst of the chunks
        ("write_bytes", 2, 2),  # the same, in one of two processes
        ("_finish", 1, 1),  # all chunks are there
        ("_write_shards", 1, 1),  # half of the result is written
        ("_delete_part", 1, 1),  # renamed, the rest not yet deleted
    ],
)
def test_killed_and_run_again_is_the_same_to_the_byte(
    text, out, tmp_path, monkeypatch, function, calls, workers
):
    command = [sys.executable, "-c", _KILLED, function, str(calls), text, out, str(workers)]
    killed = subprocess.run(command, check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    monkeypatch.setattr(sources, "BLOCK_CHARACTERS", 200)
    whole = tmp_path / "whole"
    run(text, whole)
    kept = sorted((tmp_path / "corpus.part" / "chunks").glob("*.safetensors"))
    assert kept
    assert out.exists() == (function == "_delete_part")
    written = []
    plain = preparation.write_chunk
    monkeypatch.setattr(preparation, "write_chunk", lambda *a, **k: (written.append(a[1]), plain(*a, **k)))
    run(text, out)
    assert not set(kept) & set(written)  # what was done is not done again
    assert content(out) == content(whole)
    assert {path.name for path in tmp_path.iterdir()} == {"text.txt", "corpus", "whole"}


def test_ctrl_c_says_how_to_go_on(text, out, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK_CHARACTERS", 200)
    plain = preparation.write_chunk
    calls = []

    def interrupted(*arguments, **settings):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        plain(*arguments, **settings)

    with monkeypatch.context() as patch:
        patch.setattr(preparation, "write_chunk", interrupted)
        with pytest.raises(KeyboardInterrupt, match=r"kept in .*corpus\.part: run the same again to resume"):
            run(text, out)
    assert len(list(Path(f"{out}.part", "chunks").iterdir())) == 2
    with pytest.raises(DataError, match="not a prepared corpus: its preparation was interrupted; run"):
        PreparedCorpus(out)
    assert run(text, out).report["sentences"] == 60


@pytest.mark.parametrize("nth", [2, 8, 12, 15])
def test_full_disk_is_told_and_resumed(text, out, tmp_path, monkeypatch, nth):
    monkeypatch.setattr(sources, "BLOCK_CHARACTERS", 200)
    plain = os.fsync
    calls = []

    def full(descriptor):
        calls.append(descriptor)
        if len(calls) == nth:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        plain(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(DataError, match=r"No space left on device; free some space; "):
            run(text, out)
    assert not out.exists()
    assert not list(tmp_path.rglob("*.draft"))  # half a file takes room
    run(text, out)
    run(text, tmp_path / "whole")
    assert content(out) == content(tmp_path / "whole")


@pytest.mark.parametrize("finished", [True, False])
def test_other_settings_or_text_are_told(text, out, tmp_path, monkeypatch, finished):
    if finished:
        run(text, out)
        folder = out
    else:
        monkeypatch.setattr(preparation, "_finish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run(text, out)
        folder = Path(f"{out}.part")
    done = "prepared" if finished else "begun"
    with pytest.raises(
        DataError, match=f"{folder} was {done} with other settings or files: max_tokens is 7, was 400"
    ):
        run(text, out, max_tokens=7)
    text.write_text(TEXT + "x")
    with pytest.raises(
        DataError, match=rf"sources is .*Use the same, choose another folder, or delete {folder}"
    ):
        run(text, out)


def test_empty_corpus(text, out, tmp_path):
    for empty in ("", "\n\n \n", "one\ntwo\n"):
        text.write_text(empty)
        with pytest.raises(DataError, match=r"the corpus is empty: of .* no sentence is left to train on"):
            run(text, out)
    with pytest.raises(DataError, match=r"dropped: 2 too_short; check the files, min_tokens"):
        run(text, out)
    assert list(tmp_path.iterdir()) == [text]  # nothing stands in the way of the next try
    given = tmp_path / "vocabulary.txt"
    given.write_text("<S>\n</S>\n<UNK>\none\n")
    with pytest.raises(DataError, match=r"the corpus is empty"):
        run(text, out, vocabulary=given)
    assert run(text, out, min_tokens=1).report["sentences"] == 2


def test_no_word_that_could_be_learnt(text, out):
    text.write_text("all words differ\n")
    with pytest.raises(DataError, match=r"none of the 3 distinct words .* occurs 2 times .*min_count=1"):
        run(text, out, min_count=2)


def test_a_binary_file_is_found_before_any_work(text, out, tmp_path):
    (tmp_path / "z.txt").write_bytes(b"\x89HDF\0\0\0")
    with pytest.raises(DataError, match=r"z\.txt, line 1"):
        prepare_corpus([text, tmp_path / "z.txt"], out, PrepareSettings(**CHOSEN), workers=1)
    assert not Path(f"{out}.part").exists()


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (["the", "<UNK>"], r"has no <S>, </S>; expected <S>, </S>, <UNK>.*add what is missing"),
        (["</S>", "<S>", "<UNK>", "a"], r"begins with </S>, <S>, <UNK>; expected .* first.*in this order"),
        (["<S>", "</S>", "<UNK>", "a", "<S>"], "first, and only there"),
    ],
)
def test_a_vocabulary_without_its_specials(text, out, tmp_path, tokens, message):
    Vocabulary(tokens).save(tmp_path / "vocabulary.txt")
    with pytest.raises(DataError, match=message):
        run(text, out, vocabulary=tmp_path / "vocabulary.txt")
    assert not Path(f"{out}.part").exists()


def test_held_out_text_that_is_trained_on(text, out):
    with pytest.raises(DataError, match=r"text\.txt is both training and held-out text"):
        run(text, out, heldout=[text])


def test_what_stands_in_the_way(text, out):
    out.mkdir()
    run(text, out)  # an empty folder does not
    other = out.with_name("other")
    other.write_text("precious")
    with pytest.raises(DataError, match="other exists and is not a prepared corpus"):
        run(text, other)
    other.with_name("third.part").mkdir()
    other.with_name("third.part").joinpath("mine").write_text("precious")
    with pytest.raises(DataError, match=r"third\.part exists and was not made by elmokit"):
        run(text, out.with_name("third"))


def test_opening_what_is_no_corpus(text, out):
    with pytest.raises(
        DataError, match=r"not a prepared corpus: it has no corpus\.json; prepare the text first"
    ):
        PreparedCorpus(out)
    run(text, out)
    tokens = out / "train" / "00000.tokens"
    tokens.write_bytes(tokens.read_bytes()[:-4])
    with pytest.raises(DataError, match=r"00000\.tokens has [\d,]+ bytes, expected [\d,]+; copy"):
        PreparedCorpus(out)
    tokens.unlink()
    with pytest.raises(DataError, match=r"00000\.tokens is missing"):
        PreparedCorpus(out)
    spelled = (out / "spellings.bin").read_bytes()
    shutil.rmtree(out)
    run(text, out)
    (out / "spellings.bin").write_bytes(spelled[:5])
    with pytest.raises(DataError, match=r"spellings\.bin has 5 bytes, expected [\d,]+; copy"):
        PreparedCorpus(out)
    (out / "spellings.bin").write_bytes(spelled)
    (out / "vocabulary.txt").write_text("<S>\n</S>\n<UNK>\n")
    with pytest.raises(DataError, match=r"vocabulary\.txt has 3 words, expected \d+; prepare"):
        _ = PreparedCorpus(out).vocabulary
    facts = json.loads((out / "corpus.json").read_text())
    (out / "corpus.json").write_text(json.dumps(facts | {"format_version": 99}))
    with pytest.raises(DataError, match=r"version 99, expected 2; .* the version of elmokit that made"):
        PreparedCorpus(out)
    (out / "corpus.json").write_text(json.dumps(facts | {"format_version": 1}))
    with pytest.raises(DataError, match="format version 1, expected 2; delete it and prepare the text again"):
        run(text, out)
    (out / "corpus.json").write_text("{")
    with pytest.raises(DataError, match=r"corpus\.json is damaged"):
        PreparedCorpus(out)


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"min_tokens": 0}, "min_tokens must be a whole number of at least 1, found 0"),
        ({"min_tokens": 5, "max_tokens": 4}, "max_tokens must be a whole number of at least 5, found 4"),
        ({"min_count": 0}, "min_count must be a whole number of at least 1, found 0"),
        ({"max_vocabulary": 3}, "max_vocabulary must be a whole number of at least 4, found 3"),
        ({"heldout_share": 0.7}, r"heldout_share must be a finite number from 0 to 0\.5, found 0\.7"),
        ({"split_sentences": True}, "tokenizer 'whitespace' has none.*language='en'.*split_sentences=False"),
    ],
)
def test_settings_that_cannot_be(chosen, message):
    with pytest.raises(ConfigError, match=message):
        PrepareSettings(**CHOSEN | chosen)


def test_unknown_settings_and_workers(text, out):
    with pytest.raises(ConfigError, match="unknown setting 'colour'"):
        PrepareSettings.from_options({"language": "en", "colour": 1})
    with pytest.raises(ConfigError, match="workers must be 1 or more, found 0"):
        prepare_corpus([text], out, PrepareSettings(**CHOSEN), workers=0)
