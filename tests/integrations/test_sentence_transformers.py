import numpy as np
import pytest
import torch

from elmokit import Embedder
from elmokit.errors import ModelFileError
from elmokit.formats import save_model
from tests.tiny import tiny_bundle

pytest.importorskip(
    "sentence_transformers",
    reason="pip install 'elmokit[sentence-transformers]' to test sentence-transformers",
)
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling

from elmokit.integrations.sentence_transformers import Elmo

TEXTS = ["the river bank", "", "cat", "a bank pays interest to the cat"]


def sentence_transformer(elmo):
    return SentenceTransformer(modules=[elmo, Pooling(elmo.get_embedding_dimension())], device="cpu")


def test_encode_is_elmokits(any_bundle):
    model = sentence_transformer(Elmo(any_bundle))
    expected = Embedder(any_bundle).encode(TEXTS)
    np.testing.assert_allclose(model.encode(TEXTS, batch_size=2), expected, atol=1e-5)
    np.testing.assert_allclose(model.encode("cat"), expected[2], atol=1e-5)
    assert model.get_embedding_dimension() == 6
    tokens = model.encode("the river bank", output_value="token_embeddings")
    np.testing.assert_allclose(tokens, Embedder(any_bundle).embed("the river bank").vectors, atol=1e-5)


def test_saved_and_loaded_after_training(any_bundle, tmp_path):
    elmo = Elmo(any_bundle)
    model = sentence_transformer(elmo)
    features = model.preprocess(TEXTS)
    before = {name: weight.detach().clone() for name, weight in elmo.named_parameters()}
    optimizer = torch.optim.SGD(elmo.parameters(), lr=0.1)
    losses = []
    for _ in range(5):
        loss = model(dict(features))["sentence_embedding"].square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)
    assert all(
        not torch.equal(before[name], weight) for name, weight in elmo.mix.named_parameters(prefix="mix")
    )
    model.save(str(tmp_path / "saved"))
    model.save(str(tmp_path / "saved"))  # over it
    again = SentenceTransformer(str(tmp_path / "saved"), device="cpu", trust_remote_code=True)
    np.testing.assert_allclose(again.encode(TEXTS), model.encode(TEXTS), atol=1e-6)


def test_prompts_and_tokenizer(tmp_path):
    save_model(tiny_bundle(), tmp_path / "model")
    model = sentence_transformer(Elmo(tmp_path / "model", tokenizer="rules:en"))
    np.testing.assert_allclose(model.encode("cat", prompt="the "), model.encode("the cat"), atol=1e-6)
    assert model.encode("can't", output_value="token_embeddings").shape == (2, 6)
    elmo = Elmo(tmp_path / "model", tokenizer="rules:en")
    without = SentenceTransformer(modules=[elmo, Pooling(6, include_prompt=False)], device="cpu")
    tokens = model.encode("the cat", output_value="token_embeddings")
    np.testing.assert_allclose(without.encode("cat", prompt="the "), tokens[1], atol=1e-6)


def test_long_texts_are_cut_where_the_user_says_so(tmp_path):
    model = sentence_transformer(Elmo(tiny_bundle()))
    assert model.max_seq_length is None
    first = model.encode("a bank")
    model.max_seq_length = 2
    np.testing.assert_allclose(model.encode("a bank pays interest to the cat"), first, atol=1e-6)
    model.save(str(tmp_path / "saved"))
    again = SentenceTransformer(str(tmp_path / "saved"), device="cpu", trust_remote_code=True)
    assert again.max_seq_length == 2


def test_damaged_settings(tmp_path):
    Elmo(tiny_bundle()).save(str(tmp_path))
    (tmp_path / "settings.json").write_text('{"weights": [1.0], "gamma": 1.0}')
    with pytest.raises(ModelFileError, match="expected the weights of 3 layers and a gamma"):
        Elmo.load(str(tmp_path))
