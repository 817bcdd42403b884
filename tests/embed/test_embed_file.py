import codecs
import csv
import gzip
import json
import os
from dataclasses import replace

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest

import elmokit
from elmokit.embed.embed_file import embed_file
from elmokit.embed.embedder import Embedder
from elmokit.errors import ConfigError, DataError, ElmoError
from elmokit.kernels import engine_name, supported
from elmokit.text import TokenizerSpec
from elmokit.vectors import ENDINGS, read_vectors, spool
from tests.tiny import tiny_bundle, tiny_model, wide_bundle

LINES = ["The cat sat", "", "on the bank of the river", "né 中 " + "x" * 60, "the end"]


@pytest.fixture(scope="module")
def embedder():
    # A token at a time: a resumed run has other batches, and so, to the last bit, other sums.
    return Embedder(tiny_bundle(), batch_tokens=1)


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


def stop_after(embedder, monkeypatch, count, error=KeyboardInterrupt):
    """Let `embedder.stream` fail after so many sentences, of however many calls."""
    plain, left = Embedder.stream, iter(range(count))

    def stream(self, texts, **settings):
        for sentence in plain(self, texts, **settings):
            if next(left, None) is None:
                raise error
            yield sentence

    monkeypatch.setattr(Embedder, "stream", stream)


@pytest.mark.parametrize("layers", [None, "all", "top", "average", "mix"])
def test_line_k_is_row_k(tmp_path, text, embedder, layers):
    report = embed_file(embedder, text, tmp_path / "v.h5", layers=layers)
    assert (report.sentences, report.tokens, report.truncated_tokens, report.resumed_at) == (5, 14, 1, 0)
    with h5py.File(tmp_path / "v.h5") as file:
        for number, line in enumerate(LINES):
            sentence = embedder.embed(line)
            expected = {
                "top": sentence.layers[-1],
                "average": sentence.layers.mean(axis=0),
                "mix": sentence.vectors,
            }.get(layers, sentence.layers)
            np.testing.assert_allclose(file[str(number)][...], expected, atol=1e-6)


def test_report_in_words(tmp_path, text, embedder):
    report = embed_file(embedder, text, tmp_path / "v.h5")
    words = str(replace(report, resumed_at=2, seconds=2.0))
    assert words == (
        "5 sentences, 2 of them before; 14 tokens in 2.0 s (7 per second); "
        "tokens too long for the model, truncated: 1"
    )


def test_compressed_text_tokens_and_offsets(tmp_path, embedder):
    source = tmp_path / "text.gz"
    source.write_bytes(gzip.compress(b"do  n't\n"))
    embed_file(embedder, source, tmp_path / "v.parquet", layers="top", tokens=True, dtype="float16")
    (row,) = pq.read_table(tmp_path / "v.parquet").to_pylist()
    assert (row["text"], row["tokens"], row["offsets"]) == ("do n't", ["do", "n't"], [[0, 2], [3, 6]])
    expected = next(embedder.stream([["do", "n't"]])).layers[-1]
    np.testing.assert_allclose(row["vectors"], expected, atol=1e-3)


def test_running_text_is_split(tmp_path, embedder):
    source = tmp_path / "text.txt"
    source.write_text("The cat sat. It\nleft.\n")
    report = embed_file(embedder, source, tmp_path / "v.h5", split="en")
    assert report.sentences == 2
    with h5py.File(tmp_path / "v.h5") as file:
        assert set(json.loads(file["sentence_to_index"][0])) == {"The cat sat.", "It left."}


def test_split_by_the_models_language(tmp_path, text, embedder):
    with pytest.raises(ConfigError, match=r"does not say its language; .*split='en'"):
        embed_file(embedder, text, tmp_path / "v.h5", split=True)
    bundle = replace(embedder.bundle, tokenizer=TokenizerSpec(name="whitespace", language="en"))
    assert embed_file(Embedder(bundle), text, tmp_path / "v.h5", split=True).sentences > 0


@pytest.mark.parametrize("pooling", ["mean", "max", "ends"])
def test_sentence_vectors(tmp_path, text, embedder, pooling):
    embed_file(embedder, text, tmp_path / "v.npy", pooling=pooling)
    expected = embedder.encode(LINES, pooling=pooling)
    np.testing.assert_allclose(np.load(tmp_path / "v.npy", mmap_mode="r"), expected, atol=1e-6)


def test_sentence_vectors_of_a_layer(tmp_path, text, embedder):
    embed_file(embedder, text, tmp_path / "v.npy", layers="top")
    expected = [embedder.embed(line).layers[-1].mean(axis=0) if line else np.zeros(6) for line in LINES]
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), expected, atol=1e-6)


EVERY_FORMAT = pytest.mark.parametrize("ending", ENDINGS)


def stored(path):
    """What is stored of each item, sentences or uses, whatever the format."""
    with read_vectors(path) as found:
        return [item.vectors if item.layers is None else item.layers for item in found], list(found)


@EVERY_FORMAT
@pytest.mark.parametrize("layers", ["mix", 0, "all", [0, 2]])
def test_sentence_vectors_in_every_format(tmp_path, text, embedder, ending, layers):
    embed_file(embedder, text, tmp_path / f"v{ending}", pooling="max", layers=layers)
    arrays, found = stored(tmp_path / f"v{ending}")
    expected = [embedder.embed(line).pool("max", layers=layers) for line in LINES]
    np.testing.assert_allclose(np.stack(arrays), np.stack(expected), atol=1e-6)
    if ending != ".npy":
        assert [item.text for item in found] == LINES
        assert [item.line for item in found] == [1, 2, 3, 4, 5]


@EVERY_FORMAT
@pytest.mark.parametrize("layers", ["mix", [2, 0]])
def test_the_uses_of_a_word_in_every_format(tmp_path, embedder, ending, layers):
    lines = ["the cat", "The bank of the river", "", "bank the bank"]
    target = tmp_path / f"v{ending}"
    report = embed_file(embedder, lines, target, word="the", layers=layers)
    assert report.sentences == 4
    arrays, found = stored(target)
    sentences = [embedder.embed(line) for line in lines]
    places = [(0, 0), (1, 0), (1, 3), (3, 1)]
    expected = [sentences[line].select(layers)[..., at, :] for line, at in places]
    np.testing.assert_allclose(np.stack(arrays), np.stack(expected), atol=1e-6)
    if ending != ".npy":
        assert [item.line for item in found] == [1, 2, 2, 4]
        assert [item.tokens for item in found] == [["the"], ["The"], ["the"], ["the"]]
        assert [item.offsets for item in found] == [[(0, 3)], [(0, 3)], [(12, 15)], [(5, 8)]]
        assert [item.text for item in found] == [lines[line] for line, _ in places]
    embed_file(embedder, lines, target, word="the", layers=layers, match_case=True, overwrite=True)
    assert len(stored(target)[0]) == 3


def test_a_word_of_several_tokens_is_their_mean(tmp_path, embedder):
    embed_file(embedder, ["on the bank of it"], tmp_path / "v.npy", word="the bank", layers="top")
    expected = embedder.embed("on the bank of it").layers[-1, 1:3].mean(axis=0)
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), [expected], atol=1e-6)


def test_only_lines_with_the_word_are_embedded(tmp_path, embedder, monkeypatch):
    seen = []
    plain = Embedder.stream

    def stream(self, texts, **settings):
        return plain(self, (seen.append(text) or text for text in texts), **settings)

    monkeypatch.setattr(Embedder, "stream", stream)
    embed_file(embedder, ["a cat", "my bank", "banks"], tmp_path / "v.npz", word="bank")
    assert seen == ["my bank", "banks"]


def test_uses_are_resumed(tmp_path, text, embedder, monkeypatch):
    lines = [f"{'a' if number % 3 else 'the'} line {number}" for number in range(20)]
    embed_file(embedder, lines, tmp_path / "whole.parquet", word="the")
    with monkeypatch.context() as patch:
        stop_after(embedder, patch, 3)
        with pytest.raises(KeyboardInterrupt):
            embed_file(embedder, lines, tmp_path / "v.parquet", word="the")
    report = embed_file(embedder, lines, tmp_path / "v.parquet", word="the", resume=True)
    assert report.resumed_at == 9
    assert (tmp_path / "v.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    with pytest.raises(DataError, match="exists already"):
        embed_file(embedder, lines, tmp_path / "v.parquet", word="the")


def test_the_file_says_where_it_comes_from(tmp_path, text, embedder):
    for ending in (".h5", ".npz", ".parquet", ".arrow"):
        embed_file(embedder, text, tmp_path / f"v{ending}", layers=[0, -1], dtype="float16")
        said = read_vectors(tmp_path / f"v{ending}").metadata
        assert said["model"] == "made in memory"
        assert said["engine"] == engine_name("float32")
        assert (said["elmokit"], said["unit"], said["dtype"]) == (elmokit.__version__, "token", "float16")
        assert (said["layers"], said["precision"], said["pooling"]) == ([0, 2], "float32", None)
        assert said["tokenizer"]["name"] == "whitespace"


def test_a_table_for_people(tmp_path, embedder):
    lines = ['He said "bank", twice', "", "=né 中"]
    embed_file(embedder, lines, tmp_path / "v.csv", layers=[0, 2], dtype="float16")
    assert (tmp_path / "v.csv").read_bytes().startswith(codecs.BOM_UTF8 + b"line,token,start,end,layer_0_v0,")
    with (tmp_path / "v.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["line"], row["token"], row["start"], row["end"]) for row in rows] == [
        ("1", "He", "0", "2"),
        ("1", "said", "3", "7"),
        ("1", '"bank",', "8", "15"),
        ("1", "twice", "16", "21"),
        ("3", "=né", "0", "3"),
        ("3", "中", "4", "5"),
    ]
    expected = embedder.embed(lines[2]).layers[2, 1]
    np.testing.assert_allclose([float(rows[5][f"layer_2_v{i}"]) for i in range(6)], expected, atol=1e-3)
    embed_file(embedder, lines, tmp_path / "v.tsv", pooling="mean")
    first = (tmp_path / "v.tsv").read_text(encoding="utf-8").splitlines()[0]
    assert first.split("\t") == ["line", "text", *(f"v{i}" for i in range(6))]


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("v.h5", {"layers": 3}, "there is no layer 3; the model has 0 to 2"),
        ("v.h5", {"layers": [0, "top"]}, r"a number or a list of numbers, found \[0, 'top'\]"),
        ("v.h5", {"layers": []}, "a number or a list of numbers"),
        ("v.h5", {"layers": [2, -1]}, r"layers=\[2, -1\] names a layer twice"),
        ("v.h5", {"layers": "first"}, "layers must be one of all, top, average, mix, found 'first'"),
        ("v.h5", {"dtype": "float64"}, "dtype must be one of float32, float16, found 'float64'"),
        ("v.h5", {"tokens": True, "split": "en"}, "choose one of them"),
        ("v.txt", {}, "names no format"),
        ("v.npy", {"pooling": "min"}, "pooling must be one of"),
        ("v.h5", {"pooling": "max", "word": "bank"}, "word='bank' writes vectors of uses, pooling='max'"),
        ("v.h5", {"match_case": True}, "match_case=True has no effect without a word"),
        ("v.h5", {"word": " "}, "expected a word, found word=' '"),
    ],
)
def test_settings_that_cannot_be(tmp_path, text, embedder, name, settings, message):
    with pytest.raises(ConfigError, match=message):
        embed_file(embedder, text, tmp_path / name, **settings)
    assert list(tmp_path.iterdir()) == [text]


@EVERY_FORMAT
def test_interrupted_and_resumed_is_the_same_file(tmp_path, text, embedder, monkeypatch, ending):
    whole, target = tmp_path / f"whole{ending}", tmp_path / f"v{ending}"
    embed_file(embedder, text, whole)
    with monkeypatch.context() as patch:
        stop_after(embedder, patch, 3)
        with pytest.raises(KeyboardInterrupt, match=r"interrupted; 3 sentences are kept in .*resume=True"):
            embed_file(embedder, text, target)
    report = embed_file(embedder, text, target, resume=True)
    assert (report.sentences, report.resumed_at, report.tokens) == (5, 3, 5)
    assert target.read_bytes() == whole.read_bytes()


def test_resume_of_a_finished_target_does_nothing(tmp_path, text, embedder):
    target = tmp_path / "v.h5"
    embed_file(embedder, text, target)
    before = target.stat()
    assert embed_file(embedder, text, target, resume=True) is None
    after = target.stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_size) == (
        before.st_ino,
        before.st_mtime_ns,
        before.st_size,
    )


def test_resume_of_nothing_begins(tmp_path, text, embedder):
    assert embed_file(embedder, text, tmp_path / "v.h5", resume=True).sentences == 5


@pytest.fixture
def interrupted(tmp_path, text, embedder, monkeypatch):
    with monkeypatch.context() as patch:
        stop_after(embedder, patch, 3)
        with pytest.raises(KeyboardInterrupt):
            embed_file(embedder, text, tmp_path / "v.h5")
    return tmp_path / "v.h5"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            ["The cat sat", "", "in the bank"],
            "line 3 was 'on the bank of the river', it is now 'in the bank'",
        ),
        (["The cat sat"], "line 2 was '', the text ends before it"),
    ],
)
def test_resume_with_another_text(text, embedder, interrupted, lines, message):
    text.write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match=message):
        embed_file(embedder, text, interrupted, resume=True)


def test_resume_with_another_model(text, interrupted):
    other = Embedder(tiny_bundle(tiny_model(seed=1)))
    with pytest.raises(DataError, match=r"started with another model: the vectors of 'The cat sat' differ"):
        embed_file(other, text, interrupted, resume=True)


def test_resume_with_other_settings(text, embedder, interrupted):
    with pytest.raises(DataError, match="layers is top, was all"):
        embed_file(embedder, text, interrupted, resume=True, layers="top")


def test_resume_on_another_engine(text, embedder, interrupted, monkeypatch):
    monkeypatch.setattr(Embedder, "engine", "other")
    with pytest.raises(DataError, match=r"engine is other, was .*ELMOKIT_KERNEL=.*any_engine=True"):
        embed_file(embedder, text, interrupted, resume=True)
    assert embed_file(embedder, text, interrupted, resume=True, any_engine=True).resumed_at > 0


def test_resume_of_carried_state_is_refused(tmp_path, text, embedder):
    with pytest.raises(ConfigError, match="stateful"):
        embed_file(Embedder(embedder.bundle, stateful=True), text, tmp_path / "v.h5", resume=True)


def test_a_part_is_finished_in_time(tmp_path, text, embedder, monkeypatch):
    monkeypatch.setattr(spool, "PART_SECONDS", 0)
    stop_after(embedder, monkeypatch, 3, MemoryError)
    with pytest.raises(MemoryError):
        embed_file(embedder, text, tmp_path / "v.h5")
    assert len(list((tmp_path / "v.h5.part").glob("*.vectors"))) == 3


def test_missing_text(tmp_path, embedder):
    with pytest.raises(DataError, match="does not exist"):
        embed_file(embedder, tmp_path / "none.txt", tmp_path / "v.h5")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_workers_do_not_change_a_byte(tmp_path, precision):
    if precision not in supported():
        pytest.skip(f"no {precision} products on this machine")
    text = tmp_path / "text.txt"
    text.write_text("".join(f"line {i} of the text\n" * (i % 3 + 1) for i in range(60)))
    files = []
    for workers in (None, 1, 2):
        embedder = Embedder(wide_bundle(), precision=precision, batch_tokens=8)
        files.append(tmp_path / f"{workers}.npz")
        report = embed_file(embedder, text, files[-1], workers=workers)
        assert report.sentences == 120
    contents = [path.read_bytes() for path in files]
    assert contents[0] == contents[1] == contents[2]


def test_a_worker_that_dies(tmp_path, text, monkeypatch):
    monkeypatch.setattr(Embedder, "stream", lambda self, texts, **_: os._exit(1) if list(texts) else iter(()))
    monkeypatch.setattr(Embedder, "embed", lambda self, texts: [])
    with pytest.raises(ElmoError, match="a worker process died"):
        embed_file(Embedder(tiny_bundle()), text, tmp_path / "v.npz", workers=1)


@pytest.mark.parametrize(("stateful", "workers"), [(False, 0), (True, 2)])
def test_workers_that_cannot_be(tmp_path, text, stateful, workers):
    with pytest.raises(ConfigError, match=f"workers={workers}: at least 1 is needed, with a stateless model"):
        embed_file(Embedder(tiny_bundle(), stateful=stateful), text, tmp_path / "v.npz", workers=workers)


def test_uses_are_counted_and_their_absence_is_said(tmp_path, text, embedder, caplog):
    report = embed_file(embedder, text, tmp_path / "the.csv", word="the")
    assert (report.uses, report.sentences) == (4, 5)
    assert "4 uses of the word in" in str(report)
    assert not caplog.records
    assert embed_file(embedder, text, tmp_path / "none.csv", word="zebra").uses == 0
    assert "the text has no word 'zebra'" in caplog.text


@pytest.mark.parametrize("ending", [".h5", ".npz", ".parquet", ".arrow"])
def test_a_finished_file_of_other_settings_is_not_taken_for_done(tmp_path, text, embedder, ending):
    target = tmp_path / f"v{ending}"
    embed_file(embedder, text, target, layers=[0, 2])
    assert embed_file(embedder, text, target, layers=[0, 2], resume=True) is None
    with pytest.raises(DataError, match="is complete, but was written with other settings: layers"):
        embed_file(embedder, text, target, layers="top", resume=True)
    text.write_text(text.read_text() + "one more line\n")
    with pytest.raises(DataError, match="is complete, but was made of another text"):
        embed_file(embedder, text, target, layers=[0, 2], resume=True)
    with pytest.raises(ConfigError, match="any_engine=True has no effect without resume=True"):
        embed_file(embedder, text, tmp_path / "new.h5", any_engine=True)
