import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import elmokit
from elmokit import Embedder
from elmokit.errors import ConfigError
from elmokit.formats import save_model
from elmokit.model import BiLM
from tests.tiny import tiny_bundle

transformers = pytest.importorskip(
    "transformers", minversion="5", reason="pip install 'elmokit[transformers]' to test transformers"
)
from transformers import AutoConfig, AutoModel, AutoTokenizer, DataCollatorWithPadding, pipeline  # noqa: E402

from elmokit.integrations.transformers import ElmoConfig, ElmoModel, ElmoTokenizer  # noqa: E402

SENTENCES = [["the", "cat", "sat"], ["bank"], ["the", "né", "中", "x" * 60, "the"]]
TEXT = "the river bank"


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    """Whoever tries to connect fails."""

    def refuse(*_, **__):
        raise AssertionError("nothing is ever downloaded")

    monkeypatch.setattr("socket.socket.connect", refuse)


@pytest.fixture
def folder(any_bundle, tmp_path):
    folder = tmp_path / "pretrained"
    ElmoModel.from_elmokit(any_bundle).save_pretrained(folder)
    ElmoTokenizer.from_elmokit(any_bundle).save_pretrained(folder)
    return folder


def test_numbers_are_the_embedders_after_a_round_trip(any_bundle, folder):
    model, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    assert isinstance(model, ElmoModel)
    assert isinstance(tokenizer, ElmoTokenizer)
    batch = tokenizer(SENTENCES, is_split_into_words=True, padding=True, return_tensors="pt")
    with torch.no_grad():
        output = model(**batch, output_hidden_states=True)
    assert len(output.hidden_states) == model.config.num_hidden_layers + 1 == 3
    assert output.last_hidden_state.shape == (3, 5, model.config.hidden_size)
    assert torch.equal(output.last_hidden_state, output.hidden_states[-1])
    layers = torch.stack(output.hidden_states)
    for row, sentence in enumerate(Embedder(any_bundle).embed(SENTENCES)):
        torch.testing.assert_close(layers[:, row, : len(sentence)], sentence.to_torch(), atol=1e-5, rtol=0)
        assert not layers[:, row, len(sentence) :].any()


def test_every_weight_comes_back(any_bundle, folder):
    weights = AutoModel.from_pretrained(folder).bilm.state_dict()
    for name, weight in any_bundle.model.state_dict().items():
        assert torch.equal(weights[name], weight), name
    assert AutoConfig.from_pretrained(folder).shape == any_bundle.model.config


def test_what_a_file_lacks_is_started_and_the_rest_read(any_bundle, folder):
    path = folder / "model.safetensors"
    kept = load_file(path)
    lacking = [name for name in kept if "layers.0" in name and name.endswith("bias")]
    assert lacking
    save_file({name: kept[name] for name in kept if name not in lacking}, path, metadata={"format": "pt"})
    found = AutoModel.from_pretrained(folder).state_dict()
    for name, weight in found.items():
        assert torch.equal(weight, torch.zeros_like(weight) if name in lacking else kept[name]), name


def test_feature_extraction(any_bundle, folder):
    extract = pipeline("feature-extraction", str(folder), device="cpu")
    elmo = Embedder(any_bundle)
    np.testing.assert_allclose(extract(TEXT)[0], elmo.embed(TEXT).layers[-1], atol=1e-5)
    many = extract([TEXT, "cat"], return_tensors=True)
    assert [tuple(one.shape) for one in many] == [(1, 3, 6), (1, 1, 6)]
    assert extract("") == [[[0.0] * 6]]


def test_tokenizer_of_texts(any_bundle):
    tokenizer = ElmoTokenizer.from_elmokit(any_bundle)
    assert tokenizer.tokenize(TEXT) == ["the", "river", "bank"]
    one = tokenizer(TEXT, return_offsets_mapping=True, return_length=True)
    assert one["attention_mask"] == [1, 1, 1]
    assert one["offset_mapping"] == [(0, 3), (4, 9), (10, 14)]
    assert one["length"] == 3
    pair = tokenizer([TEXT, "cat"])
    assert pair["input_ids"][0] == one["input_ids"] == tokenizer.encode(TEXT)
    assert tokenizer(TEXT.split(), is_split_into_words=True)["input_ids"] == one["input_ids"]
    assert tokenizer(TEXT, truncation=True, max_length=2)["input_ids"] == one["input_ids"][:2]
    tokenizer.truncation_side = "left"
    assert tokenizer(TEXT, truncation=True, max_length=2)["input_ids"] == one["input_ids"][1:]
    assert tokenizer(TEXT, truncation=True, max_length=9)["input_ids"] == one["input_ids"]
    left = tokenizer([TEXT, "cat"], padding=True, padding_side="left", return_tensors="pt")
    assert left["attention_mask"].tolist() == [[1, 1, 1], [0, 0, 1]]
    assert not left["input_ids"][1, :2].any()
    assert tokenizer(TEXT, padding="max_length", max_length=5, return_tensors="pt")["input_ids"].shape[
        :2
    ] == (1, 5)
    assert tokenizer(["", ""], return_tensors="pt")["attention_mask"].tolist() == [[0], [0]]
    assert tokenizer([], is_split_into_words=True)["input_ids"] == []


def test_a_word_by_itself_is_not_cut():
    tokenizer = ElmoTokenizer.from_elmokit(tiny_bundle(), tokenizer="rules:en")
    whole = tokenizer([["can't"]], is_split_into_words=True)["input_ids"]
    assert [len(sentence) for sentence in whole] == [1]
    assert len(tokenizer("can't")["input_ids"]) == 2
    assert len(tokenizer("<pad> <pad>")["input_ids"]) == len(tokenizer.tokenize("<pad> <pad>"))


def test_collators_pad(any_bundle, folder):
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    batch = DataCollatorWithPadding(tokenizer)([tokenizer(TEXT), tokenizer("cat")])
    with torch.no_grad():
        vectors = model(**batch).last_hidden_state
    for row, sentence in enumerate(Embedder(any_bundle).embed([TEXT, "cat"])):
        np.testing.assert_allclose(vectors[row, : len(sentence)], sentence.layers[-1], atol=1e-5)


def test_it_trains(folder):
    model, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    batch = tokenizer([TEXT, "the cat"], padding=True, return_tensors="pt")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(5):
        loss = model(**batch).last_hidden_state.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)
    model.save_pretrained(folder)
    again = AutoModel.from_pretrained(folder)
    back = Embedder(again.to_elmokit(tokenizer)).embed([TEXT])[0].layers[-1]
    with torch.no_grad():
        np.testing.assert_allclose(back, model(**batch).last_hidden_state[0], atol=1e-5)


def test_a_model_of_ones_own_starts_somewhere():
    config = ElmoConfig.from_bundle(tiny_bundle())
    torch.manual_seed(0)
    model = AutoModel.from_config(config)
    ids = ElmoTokenizer.from_elmokit(tiny_bundle())(TEXT, return_tensors="pt")
    vectors = model(**ids, return_dict=False)[0]
    assert vectors.shape == (1, 3, 6)
    assert vectors.isfinite().all()
    assert all(weight.any() for name, weight in model.named_parameters() if "bias" not in name)
    fresh = dict(BiLM(tiny_bundle().model.config).named_parameters())
    for name, weight in model.bilm.named_parameters():
        if "bias" not in name:
            assert 0.5 < weight.std() / fresh[name].std() < 2, name


def test_from_a_path_with_another_tokenizer(tmp_path):
    save_model(tiny_bundle(), tmp_path / "model")
    tokenizer = ElmoTokenizer.from_elmokit(tmp_path / "model", tokenizer="rules:en")
    tokenizer.save_pretrained(tmp_path / "pretrained")
    ElmoModel.from_elmokit(tmp_path / "model").save_pretrained(tmp_path / "pretrained")
    extract = pipeline("feature-extraction", str(tmp_path / "pretrained"), device="cpu")
    expected = elmokit.load(tmp_path / "model", tokenizer="rules:en").embed("The bank didn't pay.").layers[-1]
    np.testing.assert_allclose(extract("The bank didn't pay.")[0], expected, atol=1e-5)


def test_misuse():
    tokenizer = ElmoTokenizer.from_elmokit(tiny_bundle())
    with pytest.raises(ConfigError, match="leave out text_pair and return_overflowing_tokens"):
        tokenizer("one", "another")
    with pytest.raises(ConfigError, match="pass is_split_into_words=True"):
        tokenizer([["the", "cat"]])
    with pytest.raises(ConfigError, match="leave out is_split_into_words=True"):
        tokenizer("the cat", is_split_into_words=True)
    with pytest.raises(ConfigError, match=r"make it by ElmoModel\.from_elmokit"):
        ElmoModel(ElmoConfig())
