import pickle
from dataclasses import replace
from importlib.metadata import entry_points

import numpy as np
import pytest

import elmokit
from elmokit.errors import ConfigError, ModelFileError
from elmokit.formats import save_model
from tests.tiny import tiny_bundle, tiny_model, wide_bundle

spacy = pytest.importorskip("spacy", reason="pip install 'elmokit[spacy]' to test the spaCy pipe")
from spacy.tokens import Doc  # noqa: E402
from spacy.training import Example  # noqa: E402

from elmokit.integrations.spacy import StoredElmo, make_pipe, make_tok2vec, set_hooks  # noqa: E402

TEXT = (
    "The  bank of the river\nraised its rates"  # spaCy makes tokens of the second blank and of the line end
)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "tiny"
    save_model(tiny_bundle(), folder)
    return str(folder)


@pytest.fixture
def nlp(model):
    nlp = spacy.blank("en")
    nlp.add_pipe("elmokit", config={"model": model})
    return nlp


def test_tokens_are_spacys_own_and_blanks_are_zero(nlp, model):
    doc = nlp(TEXT)
    words = [token.text for token in doc if not token.is_space]
    (expected,) = elmokit.load(model).embed([words])
    blank = np.array([token.is_space for token in doc])
    assert blank.sum() == 2
    assert doc._.elmo.shape == (3, len(doc), 6)
    np.testing.assert_array_equal(doc._.elmo[:, ~blank], expected.layers)
    np.testing.assert_allclose(doc.tensor[~blank], expected.vectors, atol=1e-6)
    assert not doc._.elmo[:, blank].any()
    np.testing.assert_array_equal(doc[2].vector, doc.tensor[2])
    np.testing.assert_allclose(doc.vector, expected.vectors.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(doc[2:4].vector, doc.tensor[2:4].mean(axis=0), atol=1e-6)
    assert doc.has_vector
    assert doc[0].has_vector
    assert not doc[1].has_vector


def test_known_sentences_are_read_apart(nlp, model):
    doc = Doc(nlp.vocab, ["The", "cat", "sat", "A", "bank"], sent_starts=[True, False, False, True, False])
    first, second = elmokit.load(model).embed([["The", "cat", "sat"], ["A", "bank"]])
    layers = nlp(doc)._.elmo
    np.testing.assert_array_equal(layers, np.concatenate([first.layers, second.layers], axis=1))


def test_similarity_is_of_the_place_and_not_of_the_spelling(nlp):
    one, other = nlp("the river bank"), nlp("the bank pays")
    a, b = one[2].vector, other[1].vector
    cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
    assert one[2].similarity(other[1]) == pytest.approx(cosine, abs=1e-6)
    assert cosine < 0.9999  # spaCy's own similarity is 1 here
    assert one.similarity(one) == pytest.approx(1)
    assert one[0:2].similarity(other) < 1
    assert nlp(" ").similarity(one) == 0
    with pytest.raises(ConfigError, match=r"has a vector of 0 numbers, expected 6; pass its text through"):
        one[2].similarity(nlp.make_doc("bank"))


def test_a_stream_gives_what_single_calls_give(nlp):
    texts = ["one cat", "", "the bank", " ", "a b c d e f g"] * 3
    for doc, text in zip(nlp.pipe(texts, batch_size=4), texts, strict=True):
        np.testing.assert_allclose(doc._.elmo, nlp(text)._.elmo, atol=1e-6)
        assert doc.vector.shape == (6,)


def test_lower_case_models_read_lower_case(tmp_path):
    bundle = tiny_bundle()
    save_model(replace(bundle, tokenizer=replace(bundle.tokenizer, lowercase=True)), tmp_path / "low")
    nlp = spacy.blank("en")
    nlp.add_pipe("elmokit", config={"model": str(tmp_path / "low")})
    np.testing.assert_array_equal(nlp("The BANK").tensor, nlp("the bank").tensor)


def test_the_saved_pipeline_needs_no_other_file(tmp_path, model):
    save_model(tiny_bundle(tiny_model(seed=3), softmax=True, vocabulary=True), tmp_path / "gone")
    nlp = spacy.blank("en")
    nlp.add_pipe("elmokit", config={"model": str(tmp_path / "gone")})
    expected = nlp(TEXT).tensor
    nlp.to_disk(tmp_path / "pipeline")
    as_bytes, config = nlp.to_bytes(), nlp.config
    pickled = pickle.dumps(nlp.get_pipe("elmokit"))
    (tmp_path / "gone").rename(tmp_path / "elsewhere")
    again = spacy.load(tmp_path / "pipeline")
    again.to_disk(tmp_path / "pipeline")  # over the files it was read from
    for other in (again, spacy.load(tmp_path / "pipeline")):
        np.testing.assert_array_equal(other(TEXT).tensor, expected)
    third = spacy.blank("en").from_config(config).from_bytes(as_bytes)
    np.testing.assert_array_equal(third(TEXT).tensor, expected)
    np.testing.assert_array_equal(pickle.loads(pickled)(nlp.make_doc(TEXT)).tensor, expected)
    assert not (tmp_path / "pipeline" / "elmokit" / "softmax.safetensors").exists()


def test_documents_come_back_from_storage(nlp):
    doc = nlp(TEXT)
    again = Doc(nlp.vocab).from_bytes(doc.to_bytes(exclude=["user_hooks"]))
    np.testing.assert_array_equal(again._.elmo, doc._.elmo)
    set_hooks(again)
    np.testing.assert_array_equal(again.vector, doc.vector)


def test_a_wrong_path_is_told_at_first_use_and_by_initialize():
    nlp = spacy.blank("en")
    nlp.add_pipe("elmokit", config={"model": "no/such/model"})
    with pytest.raises(ModelFileError, match="no such file or folder"):
        nlp("A text")
    with pytest.raises(ModelFileError, match="no such file or folder"):
        nlp.initialize()


def test_errors_reach_spacys_handler(nlp, monkeypatch):
    seen = []
    nlp.set_error_handler(lambda name, pipe, docs, error: seen.append((name, len(docs))))
    monkeypatch.setattr(StoredElmo, "layers", lambda *_, **__: 1 / 0)
    assert list(nlp.pipe(["a", "b"])) == []
    assert seen == [("elmokit", 2)]


def test_gradients_of_the_layer(model):
    """Against differences of the loss Σ (Y · G), with weights that are not equal."""
    nlp = spacy.blank("en")
    docs = [nlp.make_doc("the river bank"), nlp.make_doc("a cat"), nlp.make_doc("")]
    layer = make_tok2vec(model)
    layer.initialize()
    assert layer.get_dim("nO") == 6
    assert layer.get_param("gamma") == 1
    layer.set_param("weights", np.array([0.5, -0.25, 1.0], "f"))
    layer.set_param("gamma", np.array([1.5], "f"))
    random = np.random.default_rng(0)
    gradients = [random.normal(size=(len(doc), 6)).astype("f") for doc in docs]

    def loss():
        return sum(float((y * g).sum()) for y, g in zip(layer.predict(docs), gradients, strict=True))

    outputs, backprop = layer.begin_update(docs)
    assert [one.shape for one in outputs] == [(3, 6), (2, 6), (0, 6)]
    backprop(gradients)
    for name in ("weights", "gamma"):
        value, found = layer.get_param(name).copy(), layer.get_grad(name)
        for place in range(len(value)):
            sides = []
            for step in (1e-2, -1e-2):
                changed = value.copy()
                changed[place] += step
                layer.set_param(name, changed)
                sides.append(loss())
            layer.set_param(name, value)
            assert found[place] == pytest.approx((sides[0] - sides[1]) / 2e-2, abs=2e-3)


def test_gamma_starts_from_a_sample(model):
    nlp = spacy.blank("en")
    docs = [nlp.make_doc("the river bank"), nlp.make_doc("a cat"), nlp.make_doc("")]
    layer = make_tok2vec(model)
    layer.initialize(X=docs)
    assert np.concatenate(layer.predict(docs)).std() == pytest.approx(1, abs=1e-5)


CITIES, PEOPLE = ["Paris", "London", "Berlin", "Madrid"], ["Anna", "Peter", "Maria", "Simon"]


def _examples(nlp):
    for person in PEOPLE:
        for city in CITIES:
            text = f"{person} went to {city} today"
            spans = [(0, len(person), "PERSON"), (text.index(city), text.index(city) + len(city), "CITY")]
            yield Example.from_dict(nlp.make_doc(text), {"entities": spans})


def test_spacys_own_ner_trains_on_it(tmp_path):
    save_model(wide_bundle(), tmp_path / "model")
    nlp = spacy.blank("en")
    tok2vec = {"@architectures": "elmokit.Tok2Vec.v1", "model": str(tmp_path / "model")}
    ner = nlp.add_pipe("ner", config={"model": {"tok2vec": tok2vec}})
    spacy.util.fix_random_seed(0)
    examples = list(_examples(nlp))
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.02
    losses = []
    for _ in range(40):
        loss = {}
        nlp.update(examples, sgd=optimizer, losses=loss)
        losses.append(loss["ner"])
    assert losses[-1] < 0.1 * losses[0]
    assert nlp.evaluate(list(_examples(nlp)))["ents_f"] > 0.95
    mix = ner.model.get_ref("tok2vec").layers[0]
    assert np.abs(mix.get_param("weights")).max() > 1e-3  # the mix was trained too
    (tmp_path / "model").rename(tmp_path / "elsewhere")  # a trained pipeline has the model in it
    nlp.to_disk(tmp_path / "trained")
    again = spacy.load(tmp_path / "trained")
    assert again.evaluate(list(_examples(again)))["ents_f"] > 0.95


def test_spacy_finds_both_without_an_import():
    assert entry_points(group="spacy_factories")["elmokit"].load() is make_pipe
    assert entry_points(group="spacy_architectures")["elmokit.Tok2Vec.v1"].load() is make_tok2vec


def test_config_must_name_a_model():
    with pytest.raises(ValueError, match="model"):
        spacy.blank("en").add_pipe("elmokit")
