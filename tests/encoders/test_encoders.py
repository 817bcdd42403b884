"""What all encoders keep, and what is each one's own."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import elmokit
from elmokit.encoders import (
    CachedEncoder,
    CharacterEncoder,
    ElmoEncoder,
    StaticEncoder,
    TunableEncoder,
    WordEncoder,
    open_encoder,
    open_encoders,
)
from tests import many_langs
from tests.tiny import WORDS, tiny_bundle, tiny_config, tiny_model, write_folder

SENTENCES = [["the", "cat", "sat"], [], ["né"], ["the", "bank", "of", "the", "river", "."]]


@pytest.fixture
def vectors(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("the 1 2\ncat 3 -4.5\nRiver 5 6\n")
    return path


@pytest.fixture
def elmo():
    return ElmoEncoder(elmokit.Embedder(tiny_bundle()), "tiny")


@pytest.fixture(params=["elmo", "glove", "chars", "words", "cached"])
def encoder(request, elmo, vectors, tmp_path):
    if request.param == "elmo":
        return elmo
    if request.param == "cached":
        cached = CachedEncoder(elmo, tmp_path / "cache")
        cached.fill(SENTENCES)
        return cached
    return open_encoder(f"glove:{vectors}" if request.param == "glove" else request.param)


def test_contract(encoder):
    layers = encoder.encode(SENTENCES)
    assert [tuple(one.shape) for one in layers] == [
        (encoder.num_layers, len(sentence), encoder.dim) for sentence in SENTENCES
    ]
    assert all(one.dtype == torch.float32 and not one.requires_grad for one in layers)
    assert encoder.encode([]) == []
    for sentence, together in zip(SENTENCES, layers, strict=True):  # not dependent on the batch
        torch.testing.assert_close(encoder.encode([sentence])[0], together)
    assert encoder.fingerprint() == encoder.fingerprint()


def test_what_can_be_tuned_gives_the_same_vectors_with_gradients(elmo):
    for encoder in (elmo, CharacterEncoder(), WordEncoder()):
        assert isinstance(encoder, TunableEncoder)
        layers = encoder.module(SENTENCES)
        torch.testing.assert_close(layers, torch.cat(encoder.encode(SENTENCES), dim=1))
        layers.square().sum().backward()
        staged = [parameter for stage in encoder.module.stages() for parameter in stage]
        assert len(staged) == len(list(encoder.module.parameters()))
        assert all(parameter.grad is not None for parameter in staged)


def test_a_frozen_lower_stage_has_no_gradient(elmo):
    low, *high = elmo.module.stages()
    for parameter in low:
        parameter.requires_grad_(False)
    elmo.module(SENTENCES).sum().backward()
    assert all(parameter.grad is None for parameter in low)
    assert all(parameter.grad is not None for stage in high for parameter in stage)


def test_words_of_an_elmo_without_characters(tmp_path):
    folder = write_folder(tmp_path / "words", tiny_config(words=len(WORDS)), vocabulary=WORDS)
    encoder = open_encoder(str(folder))
    torch.testing.assert_close(encoder.module(SENTENCES), torch.cat(encoder.encode(SENTENCES), dim=1))


def test_static_vectors_fall_back_to_lower_case_and_then_to_zero(vectors):
    encoder = open_encoder(f"glove:{vectors}")
    (layers,) = encoder.encode([["the", "The", "River", "river", "CAT"]])
    assert layers.tolist() == [[[1, 2], [1, 2], [5, 6], [0, 0], [3, -4.5]]]
    assert not isinstance(encoder, TunableEncoder)


def test_a_word_has_the_same_vector_wherever_it_stands():
    (layers,) = WordEncoder().encode([["银", "行", "银"]])
    assert layers[0, 0].equal(layers[0, 2])
    assert not layers[0, 0].equal(layers[0, 1])


@pytest.mark.parametrize("spec", ["chars", "words"])
def test_half_a_surrogate_is_no_error(spec):
    assert open_encoder(spec).encode([["a\udcff"]])[0].isfinite().all()


def test_saved_and_opened_again(encoder, tmp_path):
    again = open_encoder(encoder.save(tmp_path / "saved"))
    if encoder.pretrained:
        assert again.fingerprint() == encoder.fingerprint()
        for old, new in zip(encoder.encode(SENTENCES), again.encode(SENTENCES), strict=True):
            torch.testing.assert_close(old, new)


def test_fingerprint_follows_the_weights():
    def of(model):
        return ElmoEncoder(elmokit.Embedder(tiny_bundle(model)), "tiny").fingerprint()

    assert of(tiny_model()) == of(tiny_model()) != of(tiny_model(seed=1))


def test_fingerprint_follows_the_words_of_a_table(tmp_path):
    def of(name, words):
        folder = write_folder(tmp_path / name, tiny_config(words=len(WORDS)), vocabulary=words)
        return ElmoEncoder.open(str(folder)).fingerprint()

    swapped = (*WORDS[:-2], WORDS[-1], WORDS[-2])
    assert of("a", WORDS) == of("b", WORDS) != of("c", swapped)


def test_fingerprint_of_a_model_with_lexicons(tmp_path):
    folder = many_langs.write_folder(tmp_path / "model")
    assert len({ElmoEncoder.open(str(folder)).fingerprint() for _ in range(2)}) == 1


def test_specs(vectors, tmp_path):
    folder = write_folder(tmp_path / "model")
    glove, chars, elmo = open_encoders(f"glove:{vectors}+chars+elmo:{folder}")
    assert [glove.dim, chars.dim, elmo.dim] == [2, 128, 6]
    assert elmo.spec == str(folder.resolve())
    assert elmo.tokenizer is None  # the files do not say
    for spec in (elmo.spec, glove.spec, chars.spec):
        assert open_encoder(spec).fingerprint() in {e.fingerprint() for e in (glove, chars, elmo)}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("chars+", "expected different parts joined by '+'"),
        ("chars+chars", "expected different parts joined by '+'"),
        ("gluve:file", "'gluve' is no kind of encoder; expected one of elmo, glove"),
    ],
)
def test_specs_that_cannot_be(spec, message):
    with pytest.raises(elmokit.ConfigError, match="encoder") as refused:
        open_encoders(spec)
    assert message in str(refused.value)


class Counting:
    """An encoder that counts what it is asked for."""

    spec, dim, num_layers, contextual, pretrained, tokenizer = "counting", 2, 2, True, True, None

    def __init__(self):
        self.asked = []

    def encode(self, sentences):
        self.asked += map(tuple, sentences)
        return [torch.arange(4.0 * len(s)).view(2, len(s), 2) + len(s) for s in sentences]

    def fingerprint(self):
        return "f" * 32

    def save(self, folder):
        return self.spec


def test_a_cache_asks_once_and_over_runs(tmp_path):
    encoder = Counting()
    cache = CachedEncoder(encoder, tmp_path)
    done = []
    cache.fill([*SENTENCES, SENTENCES[0]], done.append)
    assert sum(done) == 5
    assert len(encoder.asked) == 4
    again = CachedEncoder(encoder, tmp_path)
    for old, new in zip(Counting().encode(SENTENCES), again.encode(SENTENCES), strict=True):
        assert torch.equal(old, new)
    again.fill(SENTENCES)
    assert len(encoder.asked) == 4
    assert again.encode([["new"]])[0].shape == (2, 1, 2)
    assert encoder.asked[-1] == ("new",)


def test_a_cache_that_was_interrupted_while_writing(tmp_path):
    cache = CachedEncoder(Counting(), tmp_path)
    cache.fill(SENTENCES)
    (keys,) = tmp_path.glob(f"{cache.fingerprint()}-*/*.keys.npy")
    keys.unlink()  # the numbers are there, their index is not
    (keys.parent / ".half.npy").write_bytes(b"half")
    encoder = Counting()
    CachedEncoder(encoder, tmp_path).fill(SENTENCES)
    assert len(encoder.asked) == 4


@given(st.lists(st.lists(st.text(max_size=3), max_size=3), min_size=2, max_size=2, unique_by=tuple))
def test_a_cache_tells_sentences_apart(sentences):
    from elmokit.encoders.cache import _key

    assert _key(sentences[0]) != _key(sentences[1])


def test_static_spec_is_absolute(vectors, monkeypatch):
    monkeypatch.chdir(vectors.parent)
    assert StaticEncoder.open(vectors.name).spec == f"glove:{vectors.resolve()}"
