import numpy as np
import pytest
import torch

import elmokit
from elmokit.errors import ConfigError
from elmokit.formats import save_model
from tests.tiny import tiny_bundle, tiny_config, wide_bundle, write_folder

flair = pytest.importorskip(
    "flair", reason="pip install 'elmokit[flair]', apart from the others, to test flair"
)
from flair.data import Corpus, Sentence  # noqa: E402
from flair.datasets import FlairDatapointDataset  # noqa: E402
from flair.embeddings import StackedEmbeddings  # noqa: E402
from flair.embeddings.base import load_embeddings  # noqa: E402
from flair.models import SequenceTagger  # noqa: E402
from flair.trainers import ModelTrainer  # noqa: E402

from elmokit.integrations.flair import ElmoEmbeddings  # noqa: E402

TOKENS = ["The", "river", "bank"]


@pytest.fixture
def model(tmp_path):
    save_model(tiny_bundle(), tmp_path / "tiny")
    return tmp_path / "tiny"


@pytest.mark.parametrize("mode", ["all", "top", "average"])
def test_numbers(model, mode):
    embeddings = ElmoEmbeddings(model, embedding_mode=mode)
    sentences = [Sentence(TOKENS), Sentence(["one"])]
    embeddings.embed(sentences)
    (expected,) = elmokit.load(model).embed([TOKENS])
    layers = expected.layers
    vectors = {"all": np.concatenate([*layers], axis=1), "top": layers[-1], "average": layers.mean(axis=0)}[
        mode
    ]
    assert embeddings.embedding_length == vectors.shape[1]
    for token, vector in zip(sentences[0], vectors, strict=True):
        np.testing.assert_allclose(token.get_embedding().numpy(), vector, atol=1e-6)
    assert sentences[1][0].get_embedding().shape == (embeddings.embedding_length,)


def test_options_and_weights_apart(tmp_path):
    folder = write_folder(tmp_path / "old", tiny_config())
    embeddings = ElmoEmbeddings(options_file=folder / "options.json", weight_file=folder / "lm_weights.hdf5")
    assert embeddings.embedding_length == 18


def test_misuse(model):
    with pytest.raises(ConfigError, match="embedding_mode must be one of all, top, average, found 'mean'"):
        ElmoEmbeddings(model, embedding_mode="mean")


def test_what_is_saved_has_the_model_in_it(model):
    stack = StackedEmbeddings([ElmoEmbeddings(model, embedding_mode="top")])
    saved = stack.save_embeddings()
    model.rename(model.with_name("elsewhere"))
    again = load_embeddings(saved)
    one, other = Sentence(TOKENS), Sentence(TOKENS)
    stack.embed(one)
    again.embed(other)
    assert again.get_names() == stack.get_names()
    for a, b in zip(one, other, strict=True):
        assert torch.equal(a.get_embedding(), b.get_embedding())


@pytest.mark.filterwarnings("ignore")  # flair's trainer calls what torch has renamed
def test_a_tagger_trains_and_is_loaded_again(tmp_path):
    save_model(wide_bundle(), tmp_path / "wide")
    sentences = []
    for person in ("Anna", "Peter", "Maria"):
        for city in ("Paris", "London", "Berlin"):
            sentence = Sentence([person, "went", "to", city])
            sentence[0:1].add_label("ner", "PER")
            sentence[3:4].add_label("ner", "LOC")
            sentences.append(sentence)
    data = FlairDatapointDataset(sentences)
    corpus = Corpus(train=data, dev=data, test=data)
    torch.manual_seed(0)
    tagger = SequenceTagger(
        embeddings=ElmoEmbeddings(tmp_path / "wide", embedding_mode="average"),
        tag_dictionary=corpus.make_label_dictionary("ner", add_unk=False),
        tag_type="ner",
        hidden_size=16,
        dropout=0,
        word_dropout=0,
        locked_dropout=0,
    )
    trainer = ModelTrainer(tagger, corpus)
    result = trainer.train(tmp_path / "run", learning_rate=0.5, mini_batch_size=3, max_epochs=10)
    assert result["test_score"] > 0.9
    (tmp_path / "wide").rename(tmp_path / "elsewhere")
    again = SequenceTagger.load(tmp_path / "run" / "final-model.pt")
    sentence = Sentence(["Maria", "went", "to", "London"])
    again.predict(sentence)
    assert [label.value for label in sentence.get_labels("ner")] == ["PER", "LOC"]
