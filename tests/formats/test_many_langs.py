"""ELMoForManyLangs folders: the oracle's numbers, round trips, and what is refused."""

import json
import pickle
import zipfile

import numpy as np
import pytest
import torch

import elmokit
from elmokit import ConfigError, ElmoError, ModelFileError
from elmokit.compat.many_langs import Embedder
from elmokit.doctor import diagnose
from elmokit.embed import Batch, InferenceBiLM
from elmokit.formats import load_model, save_model
from tests.many_langs import (
    NETWORK,
    LstmReference,
    ManyLangsReference,
    lexicons,
    network,
    random_states,
    write_folder,
)
from tests.tiny import write_zip

ODD_TEXT = [
    ["The", "cat", "sat", "."],
    [],
    ["t" * 48, "t" * 49, "z" * 80, "été", "中文", "", "\u3000", "\u2028", "\ud800"],
    ["<bos>", "<eos>", "<S>", "</S>", "<oov>", "<pad>", "bank", "bank"],
]
NETWORKS = {
    "as published": NETWORK,
    "no words": network(token_embedder={"word_dim": 0}),
    "three layers, tanh, tight clips": network(
        encoder={"n_layers": 3, "cell_clip": 0.3, "proj_clip": 0.2},
        token_embedder={"activation": "tanh", "n_highway": 2},
    ),
    "lstm": network(encoder={"name": "lstm"}),
    "lstm of three layers, no words": network(
        encoder={"name": "lstm", "n_layers": 3}, token_embedder={"word_dim": 0}
    ),
    "short tokens, no highway, no clips": network(
        encoder={"cell_clip": None, "proj_clip": 0},
        token_embedder={"max_characters_per_token": 7, "n_highway": 0},
    ),
}


@pytest.fixture
def folder(tmp_path):
    return write_folder(tmp_path / "model")


@pytest.mark.parametrize("net", NETWORKS.values(), ids=NETWORKS.keys())
@pytest.mark.parametrize("old_pickles", [False, True])
def test_the_oracles_layers(tmp_path, net, old_pickles):
    states = random_states(net, scale=0.6)
    elmo = elmokit.load(write_folder(tmp_path, net, states, old_pickles=old_pickles))
    oracle = (LstmReference if net["encoder"]["name"] == "lstm" else ManyLangsReference)(net, states)
    for tokens, sentence in zip(ODD_TEXT, elmo.embed(ODD_TEXT), strict=True):
        expected = oracle.embed(tokens)
        np.testing.assert_allclose(sentence.layers, expected[:, 1:-1], atol=1e-5)
        np.testing.assert_allclose(sentence.boundaries, expected[:, [0, -1]], atol=1e-5)


def test_marks_of_a_word_are_the_wrong_way_round_and_stay_so(tmp_path):
    states = random_states(NETWORK)
    rows = states[0]["char_emb_layer.embedding.weight"]
    elmo = elmokit.load(write_folder(tmp_path / "a", states=states))
    bow, eow = (lexicons()[0][mark] for mark in ("<bow>", "<eow>"))
    rows[[bow, eow]] = rows[[eow, bow]]
    other = elmokit.load(write_folder(tmp_path / "b", states=states))
    assert abs(elmo.embed([["cat"]])[0].layers - other.embed([["cat"]])[0].layers).max() > 0.01


def test_the_module_and_the_engine_agree(folder):
    """`BiLM.encoder` for training, `InferenceBiLM` for embedding; and gradients reach every weight."""
    bundle = load_model(folder)
    tokens = ["cat", "unknown", "<bos>"]
    ids, used = bundle.lexicon.spell(tokens, max_characters=50)
    words = bundle.lexicon.word_ids(tokens, max_characters=50)
    vectors = bundle.model.encoder(*map(torch.from_numpy, (ids, used, words)))  # (U, P)
    layers = elmokit.Embedder(bundle).embed([tokens])[0].layers
    np.testing.assert_allclose(vectors.detach(), layers[0, :, :3], atol=1e-6)
    vectors.square().sum().backward()
    assert all(parameter.grad is not None for parameter in bundle.model.encoder.parameters())


@pytest.fixture
def joined(tmp_path):
    """A folder whose encoder is "lstm"."""
    return write_folder(tmp_path / "joined", NETWORKS["lstm"])


def test_an_lstm_has_two_layers_whatever_its_depth_and_carries_no_state(joined):
    elmo = elmokit.load(joined)
    assert (elmo.num_layers, elmo.embed([["cat"], []])[0].layers.shape) == (2, (2, 1, 6))
    assert elmo.embed([]) == []
    assert "2 layers of 6 numbers" in diagnose(joined)[0].message
    with pytest.raises(ConfigError, match="leave out stateful=True"):
        elmokit.load(joined, stateful=True)


def test_module_and_engine_agree_on_an_lstm(joined):
    bundle = load_model(joined)
    vectors = torch.randn(7, 3, generator=torch.Generator().manual_seed(0))
    lengths = torch.tensor([4, 0, 3])
    layers, ends = bundle.model(vectors, lengths)
    ((fast, _),) = InferenceBiLM(bundle.model, "float32")([Batch(vectors, lengths)])
    torch.testing.assert_close(fast, layers, atol=1e-6, rtol=0)
    assert ends == []
    layers.square().sum().backward()
    assert all(parameter.grad is not None for parameter in bundle.model.layers.parameters())


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 0), ("float16", 1e-2), ("int8", 0.2)])
def test_native_folders_keep_an_lstm(joined, tmp_path, dtype, tolerance):
    save_model(load_model(joined), tmp_path / "native", dtype=dtype)
    before, after = (elmokit.load(path).embed(ODD_TEXT) for path in (joined, tmp_path / "native"))
    for a, b in zip(before, after, strict=True):
        np.testing.assert_allclose(a.layers, b.layers, atol=tolerance)


def test_the_old_interface_has_the_top_layer_of_an_lstm_alone(joined):
    top = elmokit.load(joined).embed([["cat", "bank", "the"]])[0].layers[-1]
    old = Embedder(joined)
    for output_layer, expected in ((-2, top), (-1, top.mean(axis=0)), (1, top[1])):
        np.testing.assert_allclose(old.sents2elmo([["cat", "bank", "the"]], output_layer)[0], expected)


def test_truncated_tokens_are_counted_in_characters(folder, caplog):
    sentence = elmokit.load(folder).embed([["中" * 48, "中" * 49]])[0]
    assert sentence.truncated == [1]
    assert "more than 48 characters" in caplog.text


def test_vectors_do_not_depend_on_what_else_was_embedded(folder):
    alone = elmokit.load(folder).embed([["cat", "bank"]])[0].layers
    busy = elmokit.load(folder)
    busy.embed(ODD_TEXT)
    np.testing.assert_allclose(busy.embed([["cat", "bank"], ["the"]])[0].layers, alone, atol=1e-6)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 0), ("float16", 1e-2), ("int8", 0.2)])
def test_native_folders_keep_it(folder, tmp_path, dtype, tolerance):
    save_model(load_model(folder), tmp_path / "native", dtype=dtype)
    before, after = (elmokit.load(path).embed(ODD_TEXT) for path in (folder, tmp_path / "native"))
    for a, b in zip(before, after, strict=True):
        np.testing.assert_allclose(a.layers, b.layers, atol=tolerance)
    assert all(finding.level in ("ok", "note") for finding in diagnose(tmp_path / "native"))


def test_hdf5_has_no_place_for_it(folder, tmp_path):
    with pytest.raises(ConfigError, match="use format='native'"):
        save_model(load_model(folder), tmp_path / "out", format="hdf5")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("under", ["", "136"])
def test_zips(folder, tmp_path, under):
    (folder / "meta.json").write_text("{}")
    path = write_zip(tmp_path / "136.zip", folder, under=under)
    assert elmokit.load(path).embed([["cat"]])[0].layers.shape == (3, 1, 6)
    assert diagnose(path)[0].level == "ok"


def test_doctor(folder):
    findings = diagnose(folder)
    assert findings[0].level == "ok"
    assert "ELMoForManyLangs" in findings[0].message


def test_the_published_network_need_not_be_in_the_folder(tmp_path):
    folder = write_folder(tmp_path)
    arguments = {"config_path": "../configs/cnn_50_100_512_4096_sample.json"}
    (folder / "config.json").write_text(json.dumps(arguments))
    with pytest.raises(ModelFileError, match=r"cnn_50_100_512_4096_sample.json do not fit: .*\[10, 100\]"):
        load_model(folder)


def test_the_network_by_its_path_within_the_folder(tmp_path):
    folder = write_folder(tmp_path)
    (folder / "configs").mkdir()
    (folder / "net.json").rename(folder / "configs" / "net.json")
    (folder / "config.json").write_text(json.dumps({"config_path": "configs/net.json"}))
    load_model(folder)


def test_a_native_lexicon_may_be_large(folder, tmp_path):
    bundle = load_model(folder)
    bundle.lexicon.words |= {f"\u0416{'x' * 90}{number}": 0 for number in range(180_000)}
    save_model(bundle, tmp_path / "large")
    assert (tmp_path / "large" / "lexicon.json").stat().st_size > 16 * 2**20
    assert load_model(tmp_path / "large").lexicon.words == bundle.lexicon.words


class Opens:
    """Unpickling it makes a file in the current folder."""

    def __reduce__(self):
        return (open, ("was-run", "w"))


def harmful(path):
    path.write_bytes(pickle.dumps(Opens(), protocol=2))


def harmful_zip(path):
    torch.save({"weight": Opens()}, path)


def truncated(path):
    path.write_bytes(path.read_bytes()[:500])


def a_list(path):
    torch.save([torch.zeros(1)], path)


def repeated_numbers(path):
    """A view of one number as ten thousand million."""
    torch.save({"projection.weight": torch.zeros(1).expand(100_000, 100_000)}, path)


def compressed(path):
    content = path.read_bytes()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", content)
        archive.writestr("archive/data/0", b"\0" * 1_000_000)


def more_than_there_is(path):
    """The pickle says the storage is larger than the record that holds it."""
    torch.save({"weight": torch.zeros(7919)}, path)
    data = path.read_bytes()
    number = b"M" + (7919).to_bytes(2, "little")
    assert data.count(number) >= 1
    path.write_bytes(data.replace(number, b"M" + (60000).to_bytes(2, "little")))


@pytest.mark.parametrize("name", ["token_embedder.pkl", "encoder.pkl"])
@pytest.mark.parametrize(
    "damage",
    [harmful, harmful_zip, truncated, a_list, repeated_numbers, compressed, more_than_there_is],
)
def test_pickles_that_are_no_weights(folder, name, damage, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    damage(folder / name)
    with pytest.raises(ModelFileError, match=r"\.pkl: .*get it again|do not fit"):
        load_model(folder)
    assert not (tmp_path / "was-run").exists()


def without(name):
    return lambda folder: (folder / name).unlink()


def replaced(name, old, new):
    def change(folder):
        path = folder / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("encoder.pkl"), "ELMoForManyLangs model without its encoder.pkl"),
        (without("char.dic"), "ELMoForManyLangs model without its char.dic"),
        (without("config.json"), "ELMoForManyLangs model without its config.json"),
        (without("word.dic"), "word.dic: is missing, expected a lexicon"),
        (without("net.json"), "names the network '/home/someone/configs/net.json', which is not in"),
        (replaced("config.json", "config_path", "other"), "names no network file"),
        (replaced("net.json", '"elmo"', '"lstm"'), "weights and net.json do not fit"),
        (replaced("net.json", '"elmo"', '"gru"'), "kind 'gru' cannot be read, only elmo or lstm"),
        (replaced("net.json", '"cnn"', '"lstm"'), "kind 'lstm' cannot be read, only cnn"),
        (replaced("net.json", '"char_dim": 6', '"char_dim": 0'), "embedding_dim must be"),
        (replaced("net.json", '"char_dim": 6', '"char_dim": 7'), "weights and net.json do not fit"),
        (replaced("net.json", '"filters"', '"filter"'), "net.json: 'filters' is missing"),
        (replaced("net.json", '"token_embedder"', '"embedder"'), "'token_embedder' must be an object"),
        (replaced("net.json", '"word_dim": 4', '"word_dim": 0'), "expected none"),
        (replaced("char.dic", "<bow>", "x"), "has no <bow>"),
        (replaced("word.dic", "<oov>", "x"), "the lexicon of 10 words has no <oov>"),
        (replaced("char.dic", "a\t0", "a\tzero"), "line 1 is 'a\\\\tzero', expected symbol"),
        (
            replaced("word.dic", "cat\t5", "cat\t50"),
            "lexicon has 10 words, numbered to 50, the weights have 10 rows",
        ),
    ],
)
def test_folders_that_are_not_whole(folder, change, message):
    change(folder)
    with pytest.raises(ElmoError, match=message):
        load_model(folder)
    assert diagnose(folder)[0].level == "error"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "found a list"),
        ("{}", "expected 'characters'"),
        ('{"characters": {"a": "b"}}', "whole number for each symbol"),
        ('{"characters": {"a": 1}, "words": []}', "expected 'characters' and 'words'"),
        ('{"characters": {"a": 1}}', "has no <bos>"),
    ],
)
def test_native_lexicons_that_cannot_be(folder, tmp_path, content, message):
    save_model(load_model(folder), tmp_path / "native")
    (tmp_path / "native" / "lexicon.json").write_text(content)
    with pytest.raises(ModelFileError, match=message):
        load_model(tmp_path / "native")
    (tmp_path / "native" / "lexicon.json").unlink()
    with pytest.raises(
        ModelFileError, match="the lexicon has 0 characters, numbered to 0, the weights have 26 rows"
    ):
        load_model(tmp_path / "native")
