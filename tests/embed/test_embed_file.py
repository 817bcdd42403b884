import gzip
import json
import os
from dataclasses import replace

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest

from elmokit.embed.embed_file import embed_file
from elmokit.embed.embedder import Embedder
from elmokit.errors import ConfigError, DataError, ElmoError
from elmokit.kernels.precision import supported
from elmokit.text import TokenizerSpec
from elmokit.vectors import spool
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

    def stream(self, texts):
        for sentence in plain(self, texts):
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


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("v.npy", {"layers": "all"}, "one vector per sentence; choose top, average or"),
        ("v.h5", {"layers": "first"}, "layers must be one of all, top, average, mix, found 'first'"),
        ("v.h5", {"dtype": "float64"}, "dtype must be one of float32, float16, found 'float64'"),
        ("v.h5", {"tokens": True, "split": "en"}, "choose one of them"),
        ("v.txt", {}, "names no format"),
        ("v.npy", {"pooling": "min"}, "pooling must be one of"),
        ("v.h5", {"pooling": "max"}, "pooling='max' makes sentence vectors, which only a .npy file holds"),
    ],
)
def test_settings_that_cannot_be(tmp_path, text, embedder, name, settings, message):
    with pytest.raises(ConfigError, match=message):
        embed_file(embedder, text, tmp_path / name, **settings)
    assert list(tmp_path.iterdir()) == [text]


@pytest.mark.parametrize("ending", [".h5", ".npz", ".parquet", ".arrow", ".npy"])
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
    assert target.stat() == before


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
            "sentence 2 was 'on the bank of the river', it is now 'in the bank'",
        ),
        (["The cat sat"], "sentence 1 was '', the text ends before it"),
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
    monkeypatch.setattr(Embedder, "stream", lambda self, texts: os._exit(1) if list(texts) else iter(()))
    monkeypatch.setattr(Embedder, "embed", lambda self, texts: [])
    with pytest.raises(ElmoError, match="a worker process died"):
        embed_file(Embedder(tiny_bundle()), text, tmp_path / "v.npz", workers=1)


@pytest.mark.parametrize(("stateful", "workers"), [(False, 0), (True, 2)])
def test_workers_that_cannot_be(tmp_path, text, stateful, workers):
    with pytest.raises(ConfigError, match=f"workers={workers}: at least 1 is needed, with a stateless model"):
        embed_file(Embedder(tiny_bundle(), stateful=stateful), text, tmp_path / "v.npz", workers=workers)
