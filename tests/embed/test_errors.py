"""What is warned of and what is refused, each with its message."""

import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from elmokit import ConfigError, Embedder
from elmokit.model import ScalarMix
from elmokit.text import TokenizerSpec
from tests.tiny import WORDS, tiny_bundle, tiny_config, tiny_model


@pytest.fixture(scope="module")
def elmo():
    return Embedder(tiny_bundle())


def test_a_list_of_words_is_warned_of(elmo):
    with pytest.warns(UserWarning, match="each of these 3 words is taken as a sentence of its own") as caught:
        sentences = elmo.embed(["the", "cat", "sat"])
    assert len(sentences) == 3
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "texts", [[["the", "cat", "sat"]], ["the cat", "sat", "x"], ["one", "two"], ["", "", ""]]
)
def test_what_is_not_warned_of(elmo, texts):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        elmo.embed(texts)


def test_sentences_without_blanks_are_not_warned_of():
    elmo = Embedder(tiny_bundle(), tokenizer=TokenizerSpec(name="characters"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        elmo.embed(["银行提高了利率。", "他每天吃一个苹果。", "杜鹃是鸟。"])


def test_cut_tokens_are_reported_once(caplog):
    elmo = Embedder(tiny_bundle())
    texts = [["a" * 48, "b" * 49, "é" * 24, "é" * 25], ["c" * 200]]
    assert [sentence.truncated for sentence in elmo.embed(texts)] == [[1, 3], [0]]
    assert elmo.embed("short").truncated == []
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "more than 48 bytes, of which the model reads the first 48 only: '" in record.getMessage()


def test_words_of_a_word_model_are_never_cut():
    elmo = Embedder(tiny_bundle(tiny_model(tiny_config(words=len(WORDS))), vocabulary=True))
    assert elmo.embed("a" * 100).truncated == []


def test_words_that_a_word_model_does_not_know_are_reported_once(caplog):
    elmo = Embedder(tiny_bundle(tiny_model(tiny_config(words=len(WORDS))), vocabulary=True))
    found = elmo.embed([[WORDS[-1], "zebra"], ["quagga"], [WORDS[-1]]])
    assert [sentence.unknown for sentence in found] == [[1], [0], []]
    (record,) = caplog.records
    assert f"token 'zebra' is not among the {len(WORDS)} that the model knows" in record.getMessage()
    assert Embedder(tiny_bundle()).embed("zebra").unknown == []  # a model of characters knows all words


def test_tokens_by_numpy_positions_and_slices():
    sentence = Embedder(tiny_bundle()).embed("a b c")
    np.testing.assert_array_equal(sentence[np.int64(1)], sentence["b"])
    np.testing.assert_array_equal(sentence[1:], sentence.vectors[1:])


def test_whatever_precision_surrounds_the_call():
    elmo = Embedder(tiny_bundle())
    expected = elmo.embed("a b").layers
    with torch.autocast("cpu", dtype=torch.bfloat16):
        np.testing.assert_array_equal(Embedder(tiny_bundle()).embed("a b").layers, expected)


def test_threads_share_an_embedder():
    texts = [" ".join(f"w{row}-{place}" for place in range(6)) for row in range(300)]
    elmo, alone = Embedder(tiny_bundle()), Embedder(tiny_bundle())
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(elmo.embed, texts))
    for text, sentence, again in zip(texts, found, elmo.embed(texts), strict=True):
        expected = alone.embed(text).layers
        np.testing.assert_allclose(sentence.layers, expected, atol=1e-6)
        np.testing.assert_allclose(again.layers, expected, atol=1e-6)


@pytest.mark.parametrize("words", [None, len(WORDS)])
@pytest.mark.parametrize("tokenizer", ["whitespace", "characters", "rules:en"])
def test_pickled(words, tokenizer):
    bundle = tiny_bundle(tiny_model(tiny_config(words=words)), vocabulary=words is not None)
    elmo = Embedder(bundle, tokenizer=tokenizer)
    expected = elmo.embed("the cat").layers
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(elmo)).embed("the cat").layers, expected)


def test_the_model_stays_where_its_owner_has_it():
    bundle = tiny_bundle()
    Embedder(bundle, device="meta")
    assert next(bundle.model.parameters()).device.type == "cpu"


def test_a_tokenizer_by_its_name():
    assert Embedder(tiny_bundle(), tokenizer="characters:zh").embed("银行").tokens == ["银", "行"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda elmo: elmo.embed(5), "expected a text or a list of texts, found int 5"),
        (lambda elmo: elmo.embed(None), "expected a text or a list of texts, found NoneType None"),
        (lambda elmo: elmo.embed(b"text"), "expected a text or a list of texts, found bytes b'text'"),
        (lambda elmo: elmo.embed([b"text"]), "expected a string or a list of tokens, found bytes b'text'"),
        (lambda elmo: elmo.embed([3]), "expected a string or a list of tokens, found int 3"),
        (lambda elmo: elmo.embed([["a", 3]]), "token 1 is of type int, expected str"),
        (lambda elmo: elmo.embed([[["a"]]]), "token 0 is of type list, expected str"),
        (lambda elmo: list(elmo.stream("text")), "expected a list of texts, found one string 'text'; pass"),
        (
            lambda elmo: elmo.encode(["a"], pooling="sum"),
            "pooling must be one of mean, max, ends, sif, whitened, found 'sum'",
        ),
    ],
)
def test_what_is_refused(elmo, call, message):
    with pytest.raises(ConfigError, match=f"^{message}"):
        call(elmo)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch_tokens": 0}, "batch_tokens must be a whole number of at least 1, found 0"),
        ({"device": "gpu"}, "device 'gpu' cannot be used here"),
        ({"mix": ScalarMix(2)}, "the mix has 2 layers, the model 3"),
        ({"mix": [1, 0]}, "the mix has 2 layers, the model 3"),
        ({"mix": "topp"}, "mix must be one of average, top, found 'topp'; did you mean 'top'"),
        ({"mix": 2}, "mix must be average, top, weights or a ScalarMix, found 2"),
    ],
)
def test_settings_that_cannot_be(arguments, message):
    with pytest.raises(ConfigError, match=f"^{message}"):
        Embedder(tiny_bundle(), **arguments)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_a_device_that_is_not_there():
    with pytest.raises(ConfigError, match=r"^device 'cuda' cannot be used here .*; use 'cpu' or 'auto'"):
        Embedder(tiny_bundle(), device="cuda")
