"""bilm-tf's interface: its own tests read as a specification, and our oracle's numbers."""

import json

import h5py
import numpy as np
import pytest
import torch
from torch import nn

from elmokit import ConfigError, DataError, ModelFileError
from elmokit.compat.bilm import (
    Batcher,
    BidirectionalLanguageModel,
    TokenBatcher,
    dump_bilm_embeddings,
    dump_token_embeddings,
    weight_layers,
)
from tests.reference import Reference
from tests.tiny import WORDS, tiny_arrays, tiny_config, tiny_options, write_folder, write_hdf5

SENTENCES = [["the", "cat", "sat"], ["né"], [], ["the", "river", "bank", "sat"]]


@pytest.fixture
def folder(tmp_path):
    return write_folder(tmp_path, vocabulary=WORDS)


@pytest.fixture
def files(folder):
    return str(folder / "options.json"), str(folder / "lm_weights.hdf5")


@pytest.fixture
def oracle():
    return Reference(tiny_arrays(tiny_config()), tiny_options(tiny_config()))


class TestBatcher:
    def test_ids(self, folder):
        ids = Batcher(folder / "vocab.txt", 10).batch_sentences([["né", "a"], ["</S>"]])
        assert ids.dtype == np.int64
        assert ids.shape == (2, 4, 10)
        assert ids[0, 0].tolist() == [259, 257, 260] + [261] * 7
        assert ids[0, 1].tolist() == [259, 111, 196, 170, 260] + [261] * 5
        assert ids[0, 3].tolist() == [259, 258, 260] + [261] * 7
        assert ids[1, 1].tolist() == ids[1, 2].tolist() == ids[0, 3].tolist()
        assert not ids[1, 3].any()

    def test_a_string_is_refused(self):
        with pytest.raises(ConfigError, match="bare string 'the cat'"):
            Batcher(None, 50).batch_sentences(["the cat"])

    def test_nothing(self):
        assert Batcher(None, 50).batch_sentences([]).shape == (0, 0, 50)


class TestTokenBatcher:
    def test_ids(self, folder):
        ids = TokenBatcher(folder / "vocab.txt").batch_sentences([["the", "zebra"], []])
        assert ids.tolist() == [[1, 4, 3, 2], [1, 2, 0, 0]]  # rows + 1

    def test_no_row_for_an_unknown_word(self, tmp_path):
        """The original takes row -1 + 1 = 0, padding, and silently shortens the sentence."""
        (tmp_path / "v.txt").write_text("<S>\n</S>\nthe\n")
        with pytest.raises(DataError, match="'zebra' is not in the vocabulary"):
            TokenBatcher(tmp_path / "v.txt").batch_sentences([["zebra"]])

    def test_no_boundaries(self, tmp_path):
        (tmp_path / "v.txt").write_text("<S>\n<UNK>\nthe\n")
        with pytest.raises(DataError, match="has no </S>, which stand around"):
            TokenBatcher(tmp_path / "v.txt")


class TestModel:
    def test_all_layers(self, files, oracle):
        model = BidirectionalLanguageModel(*files)
        ops = model(Batcher(None, 50).batch_sentences(SENTENCES))
        assert ops["lm_embeddings"].shape == (4, 3, 4, 6)
        assert ops["lengths"].tolist() == [3, 1, 0, 4]
        assert ops["mask"].sum(dim=1).tolist() == [3, 1, 0, 4]
        assert ops["token_embeddings"].shape == (4, 6, 3)
        for row, tokens in enumerate(SENTENCES):
            expected = oracle.embed(tokens)
            layers = ops["lm_embeddings"][row]
            np.testing.assert_allclose(layers[:, : len(tokens)], expected[:, 1:-1], atol=1e-5)
            assert not layers[:, len(tokens) :].any()
            vectors = ops["token_embeddings"][row, : len(tokens) + 2]
            np.testing.assert_allclose(vectors, expected[0, :, :3], atol=1e-5)

    def test_ids_may_be_tensors(self, files):
        model, ids = BidirectionalLanguageModel(*files), Batcher(None, 50).batch_sentences(SENTENCES)
        a, b = model(ids), model(torch.from_numpy(ids))
        assert torch.equal(a["lm_embeddings"], b["lm_embeddings"])

    def test_state_only_on_demand(self, files, oracle):
        ids = Batcher(None, 50).batch_sentences(SENTENCES[:1])
        plain, stateful = (BidirectionalLanguageModel(*files, stateful=carry) for carry in (False, True))
        assert torch.equal(plain(ids)["lm_embeddings"], plain(ids)["lm_embeddings"])
        state = {}
        for _ in range(3):
            expected = oracle.embed(SENTENCES[0], state)[:, 1:-1]
            np.testing.assert_allclose(stateful(ids)["lm_embeddings"][0], expected, atol=1e-5)

    def test_frozen_unless_asked_for(self, files):
        model = BidirectionalLanguageModel(*files)
        assert not any(parameter.requires_grad for parameter in model.parameters())
        model.requires_grad_()
        model(Batcher(None, 50).batch_sentences(SENTENCES))["lm_embeddings"].sum().backward()
        assert all(parameter.grad is not None for parameter in model.parameters())

    def test_dumped_token_vectors(self, files, folder, tmp_path):
        out = tmp_path / "vectors.hdf5"
        dump_token_embeddings(folder / "vocab.txt", *files, out)
        cached = BidirectionalLanguageModel(*files, use_character_inputs=False, embedding_weight_file=out)
        sentences = [["the", "cat"], ["bank"]]
        a = cached(TokenBatcher(folder / "vocab.txt").batch_sentences(sentences))
        b = BidirectionalLanguageModel(*files)(Batcher(None, 50).batch_sentences(sentences))
        for name in a:
            torch.testing.assert_close(a[name], b[name], atol=1e-5, rtol=0)

    def test_a_model_of_words(self, tmp_path):
        config = tiny_config(words=len(WORDS))
        folder = write_folder(tmp_path, config, vocabulary=WORDS)
        weights = folder / "lm_weights.hdf5"
        model = BidirectionalLanguageModel(
            folder / "options.json", weights, use_character_inputs=False, embedding_weight_file=weights
        )
        oracle = Reference(tiny_arrays(config), tiny_options(config), WORDS)
        ops = model(TokenBatcher(folder / "vocab.txt").batch_sentences([["cat", "zebra"]]))
        np.testing.assert_allclose(
            ops["lm_embeddings"][0], oracle.embed(["cat", "zebra"])[:, 1:-1], atol=1e-5
        )

    def test_misuse(self, files, folder):
        with pytest.raises(ConfigError, match="goes with use_character_inputs=False"):
            BidirectionalLanguageModel(*files, use_character_inputs=False)
        with pytest.raises(
            ModelFileError, match=r"expected 'embedding' of shape \[words, 3\], found no such"
        ):
            BidirectionalLanguageModel(*files, False, files[1])
        model = BidirectionalLanguageModel(*files)
        with pytest.raises(ConfigError, match="ids have 2 dimensions"):
            model(TokenBatcher(folder / "vocab.txt").batch_sentences([["cat"]]))
        with pytest.raises(ConfigError, match="no <S> and </S>"):
            model(Batcher(None, 50).batch_sentences([[]])[:, :1])
        with pytest.raises(ConfigError, match="50 character ids a token, found 20"):
            model(Batcher(None, 20).batch_sentences([["cat"]]))


class TestWeightLayers:
    ops = staticmethod(
        lambda: {
            "lm_embeddings": torch.randn(2, 3, 4, 6, generator=torch.Generator().manual_seed(0)),
            "mask": torch.tensor([[True] * 4, [True, True, False, False]]),
        }
    )

    def test_starts_as_the_average(self):
        ops = self.ops()
        mixed = weight_layers("input")(ops)
        torch.testing.assert_close(mixed["weighted_op"], ops["lm_embeddings"].mean(dim=1))
        assert mixed["regularization_op"] == 0

    def test_regularisation_is_of_the_weights_alone(self):
        mix = weight_layers("input", l2_coef=0.5)
        mix.mix.weights.data = torch.tensor([1.0, 2.0, -3.0])
        assert mix(self.ops())["regularization_op"].item() == pytest.approx(0.5 * 14)

    def test_top_only(self):
        ops, mix = self.ops(), weight_layers("input", use_top_only=True)
        mix.gamma.data[0] = 2.0
        torch.testing.assert_close(mix(ops)["weighted_op"], 2 * ops["lm_embeddings"][:, 2])
        assert [name for name, _ in mix.named_parameters()] == ["gamma"]

    def test_layer_norm_over_the_mask(self):
        ops = self.ops()
        expected = 0
        for layer in ops["lm_embeddings"].transpose(0, 1):
            counted = layer[ops["mask"]]
            expected = expected + (layer - counted.mean()) / counted.std(unbiased=False) / 3
        mixed = weight_layers("input", do_layer_norm=True)(ops)["weighted_op"]
        torch.testing.assert_close(mixed, expected, atol=1e-5, rtol=0)

    def test_trained_as_a_part_of_ones_own_module(self, files):
        class Tagger(nn.Module):
            def __init__(self):
                super().__init__()
                self.bilm = BidirectionalLanguageModel(*files)
                self.elmo = weight_layers("input", self.bilm.n_lm_layers, l2_coef=0.1)

        tagger = Tagger()
        output = tagger.elmo(tagger.bilm(Batcher(None, 50).batch_sentences(SENTENCES)))
        (output["weighted_op"].sum() + output["regularization_op"]).backward()
        assert {name for name, p in tagger.named_parameters() if p.grad is not None} == {
            "elmo.mix.weights",
            "elmo.mix.gamma",
        }


def test_dump_token_embeddings(files, folder, oracle, tmp_path):
    out = tmp_path / "vectors.hdf5"
    dump_token_embeddings(folder / "vocab.txt", *files, out)
    with h5py.File(out) as file:
        assert list(file) == ["embedding"]
        expected = np.stack([oracle.token(word) for word in WORDS])
        np.testing.assert_allclose(file["embedding"], expected, atol=1e-5)
        assert file["embedding"].dtype == np.float32


@pytest.mark.parametrize("stateful", [False, True])
def test_dump_bilm_embeddings(files, oracle, tmp_path, stateful):
    (tmp_path / "data.txt").write_text("the cat\n\n né  bank \n", encoding="utf-8")
    dump_bilm_embeddings(None, tmp_path / "data.txt", *files, tmp_path / "out.hdf5", stateful=stateful)
    state = {}
    with h5py.File(tmp_path / "out.hdf5") as file:
        assert set(file) == {"0", "1", "2"}
        for number, tokens in enumerate([["the", "cat"], [], ["né", "bank"]]):
            expected = oracle.embed(tokens, state if stateful else None)[:, 1:-1]
            np.testing.assert_allclose(file[str(number)], expected, atol=1e-5)


def test_published_token_vectors(published, tmp_path):
    """The fixture's vectors of 458 words, by characters and from a dump."""
    folder = published / "allennlp-elmo"
    words = (folder / "vocab_test.txt").read_text(encoding="utf-8")
    (tmp_path / "vocab.txt").write_text("<S>\n</S>\n" + words, encoding="utf-8")
    out = tmp_path / "vectors.hdf5"
    dump_token_embeddings(tmp_path / "vocab.txt", folder / "options.json", folder / "lm_weights.hdf5", out)
    with h5py.File(out) as ours, h5py.File(folder / "elmo_token_embeddings.hdf5") as theirs:
        np.testing.assert_allclose(ours["embedding"][2:][:457], theirs["embedding"][:457], atol=2e-6)


def test_published_embeddings(published):
    """bilm-tf's fixture: ten batches of three, state carried."""
    folder = published / "bilm-tf" / "model"
    rows = json.loads((folder / "lm_embeddings_sentences.json").read_text(encoding="utf-8"))
    model = BidirectionalLanguageModel(folder / "options.json", folder / "lm_weights.hdf5", stateful=True)
    batcher = Batcher(folder / "vocab_test.txt", 50)
    for batch in range(10):
        ops = model(batcher.batch_sentences([row[batch].split() for row in rows]))
        for row, length in enumerate(ops["lengths"].tolist()):
            with h5py.File(folder / f"lm_embeddings_{row}.hdf5") as file:
                expected = np.concatenate(file[str(batch)][...], axis=-1)
            np.testing.assert_allclose(ops["lm_embeddings"][row, 2, :length], expected, atol=2e-6)


def test_weights_of_another_kind(tmp_path, files):
    write_hdf5(tmp_path / "x.hdf5", {"embedding": np.zeros((4, 9), np.float32)})
    with pytest.raises(ModelFileError, match=r"\[words, 3\], found \[4, 9\]"):
        BidirectionalLanguageModel(*files, False, tmp_path / "x.hdf5")
