"""AllenNLP's own tests of its ELMo, read as a specification, and our oracle's numbers."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from elmokit import ConfigError, ElmoError
from elmokit.compat.allennlp import Elmo, ScalarMix, _ElmoBiLm, batch_to_ids
from tests.reference import Reference
from tests.tiny import tiny_arrays, tiny_config, tiny_options, write_folder

SENTENCES = [["The", "sentence", "."], ["ELMo", "helps", "disambiguate", "ELMo", "from", "Elmo", "."]]
VOCABULARY = ["@@PADDING@@", "@@UNKNOWN@@", "This", "is", "a", "sentence", "Here", "'s", "one", "Another"]


@pytest.fixture
def files(tmp_path):
    """Options and weights of a tiny model."""
    return model_files(tmp_path)


@pytest.fixture
def oracle():
    return Reference(tiny_arrays(tiny_config()), tiny_options(tiny_config()))


def model_files(folder, **changes):
    config = tiny_config(**changes)
    write_folder(folder, config, options=tiny_options(config))
    return folder / "options.json", folder / "lm_weights.hdf5"


def words_to_ids(batch):
    """Rows of VOCABULARY, padded with 0."""
    longest = max(map(len, batch))
    ids = torch.zeros(len(batch), longest, dtype=torch.long)
    for row, sentence in zip(ids, batch, strict=True):
        row[: len(sentence)] = torch.tensor([VOCABULARY.index(word) for word in sentence])
    return ids


def assert_close(a, b):
    torch.testing.assert_close(torch.as_tensor(a), torch.as_tensor(b), atol=1e-5, rtol=0, check_dtype=False)


class TestBatchToIds:
    def test_any_iterable(self):
        torch.testing.assert_close(batch_to_ids(iter(SENTENCES)), batch_to_ids(SENTENCES))

    def test_bytes_are_shifted_by_one_and_positions_without_token_are_zero(self):
        ids = batch_to_ids([["né"], ["a", "<S>"]])
        assert ids.shape == (2, 2, 50)
        assert ids.dtype == torch.long
        assert ids[0, 0, :6].tolist() == [259, 111, 196, 170, 260, 261]
        assert ids[0, 1].tolist() == [0] * 50
        assert ids[1, 1, :4].tolist() == [259, 257, 260, 261]

    def test_a_long_word_is_cut_to_48_bytes(self):
        row = batch_to_ids([["x" * 60]])[0, 0].tolist()
        assert row == [259, *[ord("x") + 1] * 48, 260]

    def test_empty_sentences(self):
        assert batch_to_ids([[]]).shape == (1, 0, 50)
        assert batch_to_ids([]).shape == (0, 0, 50)

    @pytest.mark.parametrize("wrong", ["The bank", ["The bank"]])
    def test_strings_are_refused(self, wrong):
        with pytest.raises(ConfigError, match="bare string 'The bank'"):
            batch_to_ids(wrong)


class TestScalarMix:
    def test_worked_by_hand(self):
        mix = ScalarMix(3)
        for parameter, weight in zip(mix.scalar_parameters, [0.1, 0.2, 0.3], strict=True):
            parameter.data[0] = weight
        mix.gamma.data[0] = 0.5
        tensors = [torch.full((2, 4), float(k)) for k in (1, 2, 3)]
        weights = np.exp([0.1, 0.2, 0.3]) / np.exp([0.1, 0.2, 0.3]).sum()
        assert_close(mix(tensors), np.full((2, 4), 0.5 * weights @ [1, 2, 3]))

    def test_another_number_of_tensors(self):
        with pytest.raises(ConfigError, match="made for 3 tensors, found 5"):
            ScalarMix(3)([torch.zeros(1, 1)] * 5)

    def test_another_number_of_weights(self):
        with pytest.raises(ConfigError, match="expected 3 initial_scalar_parameters, found 2"):
            ScalarMix(3, initial_scalar_parameters=[0.0, 0.0])

    def test_fixed_weights(self):
        mix = ScalarMix(3, initial_scalar_parameters=[1.0, 2.0, 3.0], trainable=False)
        assert [weight.item() for weight in mix.scalar_parameters] == [1.0, 2.0, 3.0]
        assert not any(parameter.requires_grad for parameter in mix.parameters())

    def test_names_of_its_state(self):
        shapes = {name: tuple(tensor.shape) for name, tensor in ScalarMix(2).state_dict().items()}
        assert shapes == {"scalar_parameters.0": (1,), "scalar_parameters.1": (1,), "gamma": (1,)}

    def test_layer_norm_over_the_mask(self):
        mix = ScalarMix(2, do_layer_norm=True)
        tensors = list(torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(0)))
        mask = torch.ones(3, 4, dtype=torch.bool)
        mask[1, 2:] = False
        expected = sum((t - t[mask].mean()) / t[mask].std(unbiased=False) for t in tensors) / 2
        assert_close(mix(tensors, mask), expected)
        with pytest.raises(ConfigError, match="needs the mask"):
            mix(tensors)


class TestElmo:
    def test_shapes_and_mask(self, files):
        output = Elmo(*files, 2, dropout=0.0)(batch_to_ids(SENTENCES))
        assert [tuple(vectors.shape) for vectors in output["elmo_representations"]] == [(2, 7, 6), (2, 7, 6)]
        assert output["mask"].tolist() == [[True] * 3 + [False] * 4, [True] * 7]

    def test_numbers(self, files, oracle):
        vectors = Elmo(*files, 1, dropout=0.0)(batch_to_ids(SENTENCES))["elmo_representations"][0]
        for row, sentence in zip(vectors, SENTENCES, strict=True):
            assert_close(row[: len(sentence)], oracle.embed(sentence)[:, 1:-1].mean(axis=0))
            assert not row[len(sentence) :].any()

    def test_boundaries_can_be_kept(self, files, oracle):
        elmo = Elmo(*files, 1, dropout=0.0, keep_sentence_boundaries=True)
        output = elmo(batch_to_ids(SENTENCES))
        assert output["mask"].sum(dim=1).tolist() == [5, 9]
        assert_close(output["elmo_representations"][0][0, :5], oracle.embed(SENTENCES[0]).mean(axis=0))
        in_four = elmo(batch_to_ids(SENTENCES)[None])
        assert in_four["elmo_representations"][0].shape == (1, 2, 9, 6)

    def test_fixed_mix_takes_one_layer(self, files, oracle):
        elmo = Elmo(*files, 1, dropout=0.0, scalar_mix_parameters=[-9e10, 1, -9e10])
        vectors = elmo(batch_to_ids(SENTENCES[1:]))["elmo_representations"][0]
        assert_close(vectors[0], oracle.embed(SENTENCES[1])[1, 1:-1])
        assert not any(parameter.requires_grad for parameter in elmo.parameters())

    def test_layer_norm_counts_boundaries_of_the_whole_batch(self, files, oracle):
        elmo = Elmo(*files, 1, dropout=0.0, do_layer_norm=True)
        vectors = elmo(batch_to_ids(SENTENCES))["elmo_representations"][0]
        layers = [oracle.embed(sentence) for sentence in SENTENCES]
        everything = np.concatenate(layers, axis=1)  # (L+1, S, 2P)
        mean, std = everything.mean(axis=(1, 2)), everything.std(axis=(1, 2))
        for row, own in zip(vectors, layers, strict=True):
            expected = ((own - mean[:, None, None]) / std[:, None, None]).mean(axis=0)[1:-1]
            assert_close(row[: len(expected)], expected)

    def test_more_than_three_dimensions(self, files):
        elmo = Elmo(*files, 1, dropout=0.0)
        ids = torch.stack([batch_to_ids(SENTENCES), batch_to_ids(SENTENCES[::-1])], dim=1)  # (2, 2, 7, 50)
        output = elmo(ids)
        assert output["mask"].shape == (2, 2, 7)
        for k in range(2):
            alone = elmo(ids[:, k])["elmo_representations"][0]
            assert_close(output["elmo_representations"][0][:, k], alone)

    def test_dropout_until_eval(self, files):
        elmo = Elmo(*files, 1)
        ids = batch_to_ids(SENTENCES)
        assert (elmo(ids)["elmo_representations"][0][1] == 0).any()
        assert not (elmo.eval()(ids)["elmo_representations"][0][1] == 0).any()

    def test_with_a_module(self, files):
        ids = batch_to_ids(SENTENCES)
        elmo = Elmo(None, None, 2, dropout=0.0, module=_ElmoBiLm(*files))
        assert elmo.get_output_dim() == 6
        assert_close(
            elmo(ids)["elmo_representations"][1], Elmo(*files, 1).eval()(ids)["elmo_representations"][0]
        )
        with pytest.raises(ConfigError, match="or a module in their place"):
            Elmo(*files, 1, module=nn.Identity())

    @pytest.mark.parametrize("requires_grad", [True, False])
    def test_gradients(self, files, requires_grad):
        elmo = Elmo(*files, 1, requires_grad=requires_grad)
        ids = torch.randint(
            0, 262, (3, 4, 50), generator=torch.Generator().manual_seed(0)
        )  # as AllenNLP's test
        elmo(ids)["elmo_representations"][0].sum().backward()
        gradients = {name: parameter.grad for name, parameter in elmo.named_parameters()}
        assert all((g is not None) == requires_grad for name, g in gradients.items() if "_elmo_lstm" in name)
        assert all(g is not None for name, g in gradients.items() if "scalar_mix" in name)

    def test_gradients_are_right(self, files):
        """Against differences, for a weight of each kind."""
        elmo = Elmo(*files, 1, requires_grad=True, dropout=0.0).double()
        ids = batch_to_ids(SENTENCES)

        def loss():
            return elmo(ids)["elmo_representations"][0].square().sum()

        loss().backward()
        for name, parameter in elmo.named_parameters():
            flat = parameter.data.flatten()
            place = int(parameter.grad.abs().argmax())
            step = torch.zeros_like(flat)
            step[place] = 1e-6
            with torch.no_grad():
                parameter += step.view_as(parameter)
                above = loss()
                parameter -= 2 * step.view_as(parameter)
                slope = (above - loss()) / 2e-6
                parameter += step.view_as(parameter)
            assert slope.item() == pytest.approx(parameter.grad.flatten()[place].item(), rel=1e-4), name

    def test_random_ids_read_0_as_a_zero_vector(self, files, oracle):
        """Inside a token AllenNLP's id 0 is a character of zeros; our oracle gets one as row 261."""
        ids = batch_to_ids([["cat"]])
        ids[0, 0, 2] = 0
        oracle.arrays["char_embed"] = np.concatenate([oracle.arrays["char_embed"], np.zeros((1, 4))])
        oracle._spell = lambda token: [258, 99, 261, 116, 259, *[260] * 45]
        vector = Elmo(*files, 1)._elmo_lstm(ids)["activations"][0][0, 1]
        assert_close(vector[:3], oracle.token("cat"))

    def test_the_batch_may_be_empty(self, files):
        output = Elmo(*files, 1)(batch_to_ids([[]]))
        assert output["elmo_representations"][0].shape == (1, 0, 6)
        assert Elmo(*files, 1)(batch_to_ids([["a"], []]))["mask"].tolist() == [[True], [False]]

    @pytest.mark.parametrize(
        ("ids", "message"),
        [
            (torch.zeros(1, 2, 20, dtype=torch.long), "50 character ids a token, found 20"),
            (batch_to_ids([["a", "b"]]) * torch.tensor([0, 1])[:, None], "stands before a token"),
        ],
    )
    def test_wrong_ids(self, files, ids, message):
        with pytest.raises(ConfigError, match=message):
            Elmo(*files, 1)(ids + 0 if ids.any() else ids + 1)

    @pytest.mark.parametrize(
        ("ids", "found"), [(torch.zeros(2, 3), r"shape \[2, 3\]"), ([["The", "bank"]], "list")]
    )
    def test_no_ids(self, files, ids, found):
        with pytest.raises(ConfigError, match=rf"character ids \(B, T, C\) of batch_to_ids, found {found}"):
            Elmo(*files, 1)(ids)

    def test_a_model_of_words_is_refused(self, tmp_path):
        config = tiny_config(words=3)
        folder = write_folder(tmp_path, config, vocabulary=("<S>", "</S>", "<UNK>"))
        with pytest.raises(ConfigError, match="reads whole words"):
            Elmo(folder, None, 1)


class TestState:
    def test_none_by_default(self, files):
        elmo = Elmo(*files, 1).eval()
        ids = batch_to_ids(SENTENCES)
        first, second = (elmo(ids)["elmo_representations"][0] for _ in range(2))
        assert torch.equal(first, second)

    def test_carried_on_demand_and_reset(self, files, oracle):
        elmo = Elmo(*files, 1, stateful=True).eval()
        states = {0: {}, 1: {}}
        calls = [SENTENCES, SENTENCES[1:], SENTENCES[::-1]]  # rows come, go and come again
        for call in calls:
            vectors = elmo(batch_to_ids(call))["elmo_representations"][0]
            for row, sentence in enumerate(call):
                expected = oracle.embed(sentence, states[row])[:, 1:-1].mean(axis=0)
                assert_close(vectors[row, : len(sentence)], expected)
        elmo._elmo_lstm._elmo_lstm.reset_states()
        fresh = elmo(batch_to_ids(SENTENCES))["elmo_representations"][0]
        assert_close(fresh[0, :3], oracle.embed(SENTENCES[0])[:, 1:-1].mean(axis=0))

    def test_the_old_switch(self, files):
        elmo = Elmo(*files, 1, stateful=True).eval()
        elmo._elmo_lstm._elmo_lstm.stateful = False
        ids = batch_to_ids(SENTENCES)
        assert torch.equal(elmo(ids)["elmo_representations"][0], elmo(ids)["elmo_representations"][0])

    def test_training_goes_through_carried_state_without_its_history(self, files):
        elmo = Elmo(*files, 1, requires_grad=True, stateful=True)
        for _ in range(2):  # a history would make the second backward fail
            elmo(batch_to_ids(SENTENCES))["elmo_representations"][0].sum().backward()


class TestCachedVocabulary:
    batch = (["This", "is", "a", "sentence"], ["Here", "'s", "one"], ["Another", "one"])

    def test_the_same_numbers(self, files):
        ids, words = batch_to_ids(self.batch), words_to_ids(self.batch)
        plain = Elmo(*files, 1).eval()(ids)
        cached = Elmo(*files, 1, vocab_to_cache=VOCABULARY).eval()(ids, words)
        assert torch.equal(plain["mask"], cached["mask"])
        assert_close(cached["elmo_representations"][0], plain["elmo_representations"][0])

    def test_characters_are_not_looked_at(self, files):
        elmo = Elmo(*files, 1, vocab_to_cache=VOCABULARY).eval()
        words = words_to_ids(self.batch)
        a, b = (
            elmo(ids, words) for ids in (batch_to_ids(self.batch), torch.ones(3, 4, 50, dtype=torch.long))
        )
        assert torch.equal(a["elmo_representations"][0], b["elmo_representations"][0])

    def test_more_dimensions(self, files):
        elmo = Elmo(*files, 1, vocab_to_cache=VOCABULARY).eval()
        ids, words = batch_to_ids(self.batch), words_to_ids(self.batch)
        alone = elmo(ids, words)["elmo_representations"][0]
        many = elmo(torch.stack([ids] * 4, dim=1), torch.stack([words] * 4, dim=1))
        assert many["mask"].shape == (3, 4, 4)
        for k in range(4):
            assert_close(many["elmo_representations"][0][:, k], alone)

    def test_an_id_beyond_the_cache_falls_back_to_characters(self, files):
        elmo = Elmo(*files, 1, vocab_to_cache=VOCABULARY).eval()
        batch = [["This", "is", "OOV"], ["so", "is", "this"]]
        words = torch.tensor([[2, 3, 99], [98, 3, 97]])
        expected = elmo(batch_to_ids(batch))["elmo_representations"][0]
        assert_close(elmo(batch_to_ids(batch), words)["elmo_representations"][0], expected)

    def test_words_without_a_cache_are_said_to_be_ignored(self, files, caplog):
        elmo = Elmo(*files, 1).eval()
        elmo(batch_to_ids(self.batch), words_to_ids(self.batch))
        assert "word_inputs are ignored" in caplog.text

    def test_padding_is_zero_and_stays(self, files):
        table = Elmo(*files, 1, vocab_to_cache=VOCABULARY)._elmo_lstm._word_embedding
        assert table.weight.shape == (10, 3)
        assert not table.weight[0].any()
        assert not table.weight.requires_grad


class TestStateDict:
    def test_their_names_and_shapes(self, files):
        shapes = {name: tuple(tensor.shape) for name, tensor in Elmo(*files, 2).state_dict().items()}
        assert len(shapes) == 1 + 3 * 2 + 2 + 2 + 2 * 2 * 4 + 2 * 4
        assert shapes["_elmo_lstm._token_embedder._char_embedding_weights"] == (262, 4)
        assert shapes["_elmo_lstm._token_embedder.char_conv_2.weight"] == (4, 4, 3)
        assert shapes["_elmo_lstm._token_embedder._highways._layers.0.weight"] == (18, 9)
        assert shapes["_elmo_lstm._token_embedder._projection.weight"] == (3, 9)
        assert shapes["_elmo_lstm._elmo_lstm.forward_layer_0.input_linearity.weight"] == (20, 3)
        assert shapes["_elmo_lstm._elmo_lstm.backward_layer_1.state_linearity.bias"] == (20,)
        assert shapes["_elmo_lstm._elmo_lstm.forward_layer_1.state_projection.weight"] == (3, 5)
        assert shapes["scalar_mix_1.scalar_parameters.2"] == (1,)

    def test_their_numbers(self, files):
        """The map from HDF5: gates i, j, f, o → i, f, j, o; 1 more on f; carry negated; a row of zeros."""
        state, arrays = Elmo(*files, 1).state_dict(), tiny_arrays(tiny_config())
        bias = arrays["RNN_1/RNN/MultiRNNCell/Cell0/LSTMCell/B"]
        i, j, f, o = np.split(bias, 4)
        assert_close(
            state["_elmo_lstm._elmo_lstm.backward_layer_0.state_linearity.bias"],
            np.concatenate([i, f + 1, j, o]),
        )
        highway = state["_elmo_lstm._token_embedder._highways._layers.0.weight"]
        assert_close(highway[:9], arrays["CNN_high_0/W_transform"].T)
        assert_close(highway[9:], -arrays["CNN_high_0/W_carry"].T)
        table = state["_elmo_lstm._token_embedder._char_embedding_weights"]
        assert_close(table[1:], arrays["char_embed"])
        assert not table[0].any()

    def test_a_model_that_contains_elmo_loads(self, files, tmp_path):
        class Tagger(nn.Module):
            def __init__(self, paths):
                super().__init__()
                self.elmo = Elmo(*paths, 2, vocab_to_cache=VOCABULARY)
                self.head = nn.Linear(6, 3)

        old, new = Tagger(files), Tagger(model_files(tmp_path / "other"))
        with torch.no_grad():
            for parameter in old.parameters():
                parameter += 0.1
        torch.save(old.state_dict(), tmp_path / "best.th")
        result = new.load_state_dict(torch.load(tmp_path / "best.th", weights_only=True))
        assert result.missing_keys == result.unexpected_keys == []
        ids = batch_to_ids(SENTENCES)
        for a, b in zip(
            *(tagger.eval().elmo(ids)["elmo_representations"] for tagger in (old, new)), strict=True
        ):
            assert_close(a, b)

    def test_missing_and_unexpected_and_misshapen(self, files):
        elmo = Elmo(*files, 1)
        state = elmo.state_dict()
        name = "_elmo_lstm._elmo_lstm.forward_layer_0.input_linearity.weight"
        kept = state.pop(name)
        state["_elmo_lstm.other"] = torch.zeros(1)
        with pytest.raises(RuntimeError, match=rf"(?s)Missing.*{name}"):
            elmo.load_state_dict(state)
        result = elmo.load_state_dict(state, strict=False)
        assert result.missing_keys == [name]
        assert result.unexpected_keys == ["_elmo_lstm.other"]
        assert torch.equal(elmo.state_dict()[name], kept)
        state = {**elmo.state_dict(), name: torch.zeros(2, 2)}
        with pytest.raises(RuntimeError, match=r"size mismatch .* found \[2, 2\], the model has \[20, 3\]"):
            elmo.load_state_dict(state)

    def test_models_without_projections(self, tmp_path):
        changes = {"cell_dim": 9, "projection_dim": 9, "projection": False, "char_projection": False}
        elmo = Elmo(*model_files(tmp_path, **changes), 1)
        assert elmo.load_state_dict(elmo.state_dict()).missing_keys == []

    def test_copies_are_independent(self, files):
        elmo = Elmo(*files, 1).eval()
        twin = copy.deepcopy(elmo)
        twin.load_state_dict({name: tensor * 0 for name, tensor in twin.state_dict().items()})
        assert elmo(batch_to_ids(SENTENCES))["elmo_representations"][0].any()


@pytest.mark.parametrize("stateful", [False, True])
def test_mixed_precision(files, stateful):
    elmo = Elmo(*files, 1, requires_grad=True, stateful=stateful)
    ids = batch_to_ids(SENTENCES)
    for _ in range(2):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            vectors = elmo(ids)["elmo_representations"][0]
        vectors.float().sum().backward()
    assert all(p.grad.isfinite().all() for p in elmo.parameters() if p.grad is not None)


def test_a_state_goes_on_from_inference_to_training_and_to_double(files):
    elmo = Elmo(*files, 1, requires_grad=True, stateful=True)
    ids = batch_to_ids(SENTENCES)
    with torch.inference_mode():
        elmo(ids)
    elmo(ids)["elmo_representations"][0].sum().backward()
    elmo.double()(ids)


def test_errors_are_ours():
    with pytest.raises(ElmoError, match="no such file"):
        Elmo("nowhere/options.json", "nowhere/weights.hdf5", 1)
