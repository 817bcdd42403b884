"""AllenNLP 0.9's `ElmoEmbedder`, after its own tests."""

import io
import json

import h5py
import numpy as np
import pytest
import torch

from elmokit import ConfigError, DataError
from elmokit.compat.allennlp import ElmoEmbedder
from tests.reference import Reference
from tests.tiny import tiny_arrays, tiny_config, tiny_options, write_folder

SENTENCES = ["Michael went to the store to buy some eggs .", "Joel rolled down the street .", "test / this"]


@pytest.fixture
def files(tmp_path):
    write_folder(tmp_path)
    return str(tmp_path / "options.json"), str(tmp_path / "lm_weights.hdf5")


@pytest.fixture
def oracle():
    return Reference(tiny_arrays(tiny_config()), tiny_options(tiny_config()))


def test_embed_sentence_and_batch(files, oracle):
    embedder = ElmoEmbedder(*files)
    batch = [sentence.split() for sentence in SENTENCES]
    embedded = embedder.embed_batch(batch)
    for sentence, layers in zip(batch, embedded, strict=True):
        assert layers.dtype == np.float32
        np.testing.assert_allclose(layers, oracle.embed(sentence)[:, 1:-1], atol=1e-5)
    np.testing.assert_allclose(embedder.embed_sentence(batch[0]), embedded[0], atol=1e-6)


def test_batch_to_embeddings_is_padded_with_zeros(files, oracle):
    batch = [sentence.split() for sentence in SENTENCES]
    layers, mask = ElmoEmbedder(*files).batch_to_embeddings(batch)
    assert layers.shape == (3, 3, 10, 6)
    assert mask.sum(dim=1).tolist() == [10, 6, 3]
    assert not layers[1, :, 6:].any()
    np.testing.assert_allclose(layers[2, :, :3], oracle.embed(batch[2])[:, 1:-1], atol=1e-5)


def test_empty_sentences_have_the_models_sizes(files):
    embedder = ElmoEmbedder(*files)
    assert embedder.embed_sentence([]).shape == (3, 0, 6)
    assert [layers.shape for layers in embedder.embed_batch([[], ["a"]])] == [(3, 0, 6), (3, 1, 6)]
    assert embedder.batch_to_embeddings([[]])[0].shape == (1, 3, 0, 6)
    assert embedder.embed_batch([]) == []


def test_embed_sentences_in_order_and_lazily(files):
    embedder = ElmoEmbedder(*files)
    taken = []

    def sentences():
        for length in (3, 1, 2, 5, 4):
            taken.append(length)
            yield ["word"] * length

    stream = embedder.embed_sentences(sentences(), batch_size=2)
    assert next(stream).shape == (3, 3, 6)
    assert taken == [3, 1]
    assert [layers.shape[1] for layers in stream] == [1, 2, 5, 4]


def test_state_only_on_demand(files, oracle):
    sentence = ["the", "cat"]
    plain, stateful = ElmoEmbedder(*files), ElmoEmbedder(*files, stateful=True)
    assert np.array_equal(plain.embed_sentence(sentence), plain.embed_sentence(sentence))
    state = {}
    for _ in range(3):
        expected = oracle.embed(sentence, state)[:, 1:-1]
        np.testing.assert_allclose(stateful.embed_sentence(sentence), expected, atol=1e-5)


@pytest.mark.parametrize("output_format", ["all", "top", "average"])
def test_embed_file(files, tmp_path, output_format):
    embedder, out = ElmoEmbedder(*files), tmp_path / "out.hdf5"
    embedder.embed_file(io.StringIO("\n".join(SENTENCES)), str(out), output_format, batch_size=2)
    with h5py.File(out) as file:
        assert set(file) == {"0", "1", "2", "sentence_to_index"}
        assert json.loads(file["sentence_to_index"][0]) == {s: str(i) for i, s in enumerate(SENTENCES)}
        for number, sentence in enumerate(SENTENCES):
            layers = embedder.embed_sentence(sentence.split())
            expected = {"all": layers, "top": layers[2], "average": layers.mean(axis=0)}[output_format]
            assert file[str(number)].dtype == np.float32
            np.testing.assert_allclose(file[str(number)], expected, atol=1e-6)


def test_embed_file_with_other_keys(files, tmp_path):
    embedder, out = ElmoEmbedder(*files), tmp_path / "out.hdf5"
    embedder.embed_file(io.StringIO("a b\na b\n"), out, forget_sentences=True)
    with h5py.File(out) as file:
        assert set(file) == {"0", "1"}
    embedder.embed_file(io.StringIO("a b\nc\n"), out, use_sentence_keys=True)
    with h5py.File(out) as file:
        assert {key: file[key].shape for key in file} == {"a b": (3, 2, 6), "c": (3, 1, 6)}


def test_duplicates_keep_the_last_number(files, tmp_path):
    out = tmp_path / "out.hdf5"
    ElmoEmbedder(*files).embed_file(io.StringIO("a\na\n"), out)
    with h5py.File(out) as file:
        assert json.loads(file["sentence_to_index"][0]) == {"a": "1"}


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("A\n\n\nB\n", {}, r"lines \[1, 2\] \(from 0\) are blank"),
        ("a\na\n", {"use_sentence_keys": True}, "occurs twice"),
    ],
)
def test_files_that_cannot_be(files, tmp_path, text, settings, message):
    with pytest.raises(DataError, match=message):
        ElmoEmbedder(*files).embed_file(io.StringIO(text), tmp_path / "out.hdf5", **settings)
    assert not (tmp_path / "out.hdf5").exists()


def test_misuse(files, tmp_path):
    embedder = ElmoEmbedder(*files)
    with pytest.raises(ConfigError, match="downloads no default model"):
        ElmoEmbedder()
    with pytest.raises(ConfigError, match="output_format must be one of all, top, average, found 'mean'"):
        embedder.embed_file(io.StringIO("a"), tmp_path / "x", "mean")
    for call in (embedder.embed_sentence, lambda text: embedder.embed_batch([text]), embedder.embed_batch):
        with pytest.raises(ConfigError, match="bare string 'The bank'"):
            call("The bank")


def test_published_embeddings(published):
    """AllenNLP's fixture: ten batches of three, state carried."""
    folder = published / "allennlp-elmo"
    rows = json.loads((folder / "sentences.json").read_text(encoding="utf-8"))
    sentences = [rows[row][batch].split() for batch in range(10) for row in range(3)]
    embedder = ElmoEmbedder(folder / "options.json", folder / "lm_weights.hdf5", stateful=True)
    for number, layers in enumerate(embedder.embed_sentences(sentences, batch_size=3)):
        with h5py.File(folder / f"lm_embeddings_{number % 3}.hdf5") as file:
            expected = np.concatenate(file[str(number // 3)][...], axis=-1)
        np.testing.assert_allclose(layers[2], expected, atol=2e-6)
    assert torch.is_tensor(embedder.batch_to_embeddings([["a"]])[1])
