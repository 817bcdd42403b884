"""The main job: what goes in, what comes out, in which order, and that a sentence depends on itself alone."""

import itertools
import queue

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elmokit
from elmokit import ConfigError, DataError, Embedder
from elmokit.embed import reader, type_vectors
from elmokit.model import ScalarMix
from tests.tiny import WORDS, tiny_bundle, tiny_config, tiny_model, write_folder

TEXTS = [
    "the cat sat",
    "",
    "a river bank",
    "the bank",
    "x",
    "one two three four five six seven",
    "the cat sat",
]


@pytest.fixture(scope="module")
def elmo():
    return Embedder(tiny_bundle())


def assert_equal(a, b, atol=1e-5):
    assert (a.text, a.tokens, a.offsets, a.truncated) == (b.text, b.tokens, b.offsets, b.truncated)
    for name in ("layers", "vectors", "boundaries"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), atol=atol, rtol=0)


# What comes out


def test_one_string_is_one_sentence(elmo):
    sentence = elmo.embed("the cat sat")
    assert sentence.tokens == ["the", "cat", "sat"]
    assert sentence.offsets == [(0, 3), (4, 7), (8, 11)]
    assert sentence.layers.shape == (elmo.num_layers, 3, elmo.dim) == (3, 3, 6)
    assert sentence.vectors.shape == (3, 6)
    assert sentence.boundaries.shape == (3, 2, 6)
    assert sentence.layers.dtype == sentence.vectors.dtype == np.float32
    assert len(sentence) == 3


def test_strings_and_token_lists_may_be_mixed(elmo):
    a, b, c = elmo.embed(["the cat", ["the", "cat"], ("the cat",)])
    assert_equal(a, b)
    assert c.tokens == ["the cat"]
    assert (b.text, b.offsets) == ("the cat", [(0, 3), (4, 7)])


def test_nothing_in_nothing_out(elmo):
    assert elmo.embed([]) == []
    assert list(elmo.stream(iter([]))) == []
    assert elmo.encode([]).shape == (0, 6)


@pytest.mark.parametrize("empty", ["", "   ", "\n"])
def test_an_empty_sentence(elmo, empty):
    sentence = elmo.embed(empty)
    assert sentence.layers.shape == (3, 0, 6)
    assert sentence.vectors.shape == (0, 6)
    assert sentence.boundaries.shape == (3, 2, 6)
    assert (sentence.tokens, sentence.offsets, sentence.text) == ([], [], empty)
    assert_equal(elmo.embed([[], empty])[1], sentence)


def test_offsets_are_those_of_the_text():
    text = "  Dr. Müller's 中文 costs $5.\u00a0"
    sentence = Embedder(tiny_bundle(tokenizer="rules")).embed(text)
    assert [text[start:end] for start, end in sentence.offsets] == sentence.tokens


def test_odd_tokens_have_finite_vectors(elmo):
    odd = ["\ud800", "👩‍👩‍👧", "\u200b", "", "<S>", "</S>", "\0", "a\nb", "x" * 10_000, "中" * 40]
    sentence = elmo.embed([odd])[0]
    assert sentence.tokens == odd
    assert sentence.layers.shape == (3, len(odd), 6)
    assert np.isfinite(sentence.layers).all()
    # A lone surrogate has no bytes.
    np.testing.assert_allclose(sentence.layers[0, 0], sentence.layers[0, 3], atol=1e-6)


def test_a_boundary_typed_as_a_token_is_the_boundary(elmo):
    sentence = elmo.embed([["<S>", "<s>", "</S>"]])[0]
    np.testing.assert_array_equal(sentence.layers[0, 0], sentence.boundaries[0, 0])
    np.testing.assert_array_equal(sentence.layers[0, 2], sentence.boundaries[0, 1])
    assert abs(sentence.layers[0, 1] - sentence.layers[0, 0]).max() > 1e-3


def test_results_are_copies_of_their_own(elmo):
    a, b = elmo.embed(["the cat", "the bank"])
    assert a.layers.base is None
    before = b.layers.copy()
    a.layers[...] = 0
    np.testing.assert_array_equal(b.layers, before)


def test_to_torch_shares_memory(elmo):
    sentence = elmo.embed("the cat")
    tensor = sentence.to_torch()
    assert tensor.shape == (3, 2, 6)
    tensor[0, 0, 0] = 42
    assert sentence.layers[0, 0, 0] == 42


# A sentence depends on itself alone


@settings(max_examples=20)
@given(
    st.lists(st.lists(st.sampled_from(["a", "the", "cat", "Bank", "né", "中", ""]), max_size=6), max_size=8),
    st.integers(1, 40),
    st.randoms(),
)
def test_batch_order_and_neighbours_do_not_matter(texts, batch_tokens, random):
    elmo = Embedder(tiny_bundle(), batch_tokens=batch_tokens)
    alone = [elmo.embed([text])[0] for text in texts]
    order = list(range(len(texts)))
    random.shuffle(order)
    for row, sentence in zip(order, elmo.embed([texts[row] for row in order]), strict=True):
        assert_equal(sentence, alone[row])


@pytest.mark.parametrize("batch_tokens", [1, 2, 5, 13, 10**9])
def test_any_budget_gives_the_same_in_order(elmo, batch_tokens):
    for a, b in zip(
        Embedder(tiny_bundle(), batch_tokens=batch_tokens).embed(TEXTS), elmo.embed(TEXTS), strict=True
    ):
        assert_equal(a, b)
    assert [sentence.text for sentence in elmo.embed(TEXTS)] == TEXTS


def test_twice_is_the_same(elmo):
    first, second = elmo.embed(TEXTS), elmo.embed(TEXTS)
    assert_equal(first[0], first[-1])
    for a, b in zip(first, second, strict=True):
        assert_equal(a, b, atol=0)


@pytest.mark.parametrize("kind", ["bilm-tf", "allennlp"])
def test_a_layer_norm_looks_at_the_sentence_alone(kind):
    mix = ScalarMix(3, layer_norm=kind)
    elmo = Embedder(tiny_bundle(), mix=mix)
    for text, sentence in zip(TEXTS, elmo.embed(TEXTS), strict=True):
        assert_equal(sentence, elmo.embed(text))
    sentence = elmo.embed("the cat sat")
    whole = np.concatenate([sentence.boundaries[:, :1], sentence.layers, sentence.boundaries[:, 1:]], axis=1)
    counted = whole if kind == "allennlp" else sentence.layers
    mean, deviation = counted.mean(axis=(1, 2), keepdims=True), counted.std(axis=(1, 2), keepdims=True)
    expected = ((sentence.layers - mean) / deviation).mean(axis=0)
    np.testing.assert_allclose(sentence.vectors, expected, atol=1e-5)


def test_vectors_are_the_mix(elmo):
    np.testing.assert_allclose(elmo.embed("a b").vectors, elmo.embed("a b").layers.mean(axis=0), atol=1e-6)
    top = Embedder(tiny_bundle(), mix=ScalarMix.top(3)).embed("a b")
    np.testing.assert_allclose(top.vectors, top.layers[-1], atol=1e-6)
    named = Embedder(tiny_bundle(), mix="top").embed("a b")
    np.testing.assert_array_equal(named.vectors, top.vectors)
    weighted = Embedder(tiny_bundle(), mix=[0.5, 0, 2]).embed("a b")
    expected = 0.5 * weighted.layers[0] + 2 * weighted.layers[2]
    np.testing.assert_allclose(weighted.vectors, expected, atol=1e-6)
    drop = Embedder(tiny_bundle(), mix=ScalarMix(3, dropout=0.9)).embed("a b")
    np.testing.assert_allclose(drop.vectors, drop.layers.mean(axis=0), atol=1e-6)


def test_the_cache_does_not_change_a_number(elmo, monkeypatch):
    monkeypatch.setattr(type_vectors, "_CACHED_TYPES", 3)
    small = Embedder(tiny_bundle(), batch_tokens=6)
    for _ in range(2):
        for a, b in zip(small.embed(TEXTS), elmo.embed(TEXTS), strict=True):
            assert_equal(a, b)


def test_each_type_is_encoded_once(monkeypatch):
    elmo = Embedder(tiny_bundle())
    seen = []
    encode = elmo._type_vectors._encode
    monkeypatch.setattr(elmo._type_vectors, "_encode", lambda types: seen.extend(types) or encode(types))
    elmo.embed(["a b a", "b c"])
    elmo.embed("a c d")
    assert sorted(seen) == ["</S>", "<S>", "a", "b", "c", "d"]


def test_a_long_sentence(elmo):
    words = [f"w{i % 97}" for i in range(5000)]
    sentence = elmo.embed([words])[0]
    assert sentence.layers.shape == (3, 5000, 6)
    head = elmo.embed([words[:10]])[0]
    np.testing.assert_allclose(sentence.layers[:, :10, :3], head.layers[:, :, :3], atol=1e-5)


def test_a_model_of_words():
    elmo = Embedder(tiny_bundle(tiny_model(tiny_config(words=len(WORDS))), vocabulary=True))
    known, unknown, also = elmo.embed(["the cat", "the <UNK>", "the zebra"])
    np.testing.assert_allclose(unknown.layers, also.layers, atol=1e-6)
    assert abs(known.layers[0, 1] - unknown.layers[0, 1]).max() > 1e-3
    np.testing.assert_array_equal(known.layers[0, 0, :3], elmo.model.encoder.weight[3].detach().numpy())


def test_a_model_of_words_without_unknown_says_so(tmp_path):
    words = ("<S>", "</S>", "the")
    folder = write_folder(tmp_path, tiny_config(words=3), vocabulary=words)
    with pytest.raises(DataError, match=r"^'zebra' is not in the vocabulary of 3 tokens, which has no <UNK>"):
        elmokit.load(folder).embed("the zebra")


# Streams


def test_a_stream_is_lazy_and_looks_only_a_window_ahead(monkeypatch):
    monkeypatch.setattr(reader, "_WINDOW_BATCHES", 2)
    elmo = Embedder(tiny_bundle(), batch_tokens=8)
    taken = 0

    def endless():
        nonlocal taken
        for number in itertools.count():
            taken += 1
            yield f"sentence {number}"

    results = elmo.stream(endless())
    assert taken == 0
    for number, sentence in zip(range(50), results, strict=False):
        assert sentence.text == f"sentence {number}"
        assert taken <= number + 4  # a window of 16 tokens holds 4 sentences of 2 words and 2 boundaries


def test_the_first_answers_of_a_stream_come_early(elmo):
    taken = itertools.count()
    results = elmo.stream(f"sentence {next(taken)}" for _ in range(100_000))
    assert next(results).text == "sentence 0"
    assert next(taken) < 100


def test_a_stream_answers_each_text_before_the_next_one_comes(elmo):
    answers = queue.Queue()

    def conversation():
        for text in TEXTS:
            yield text
            assert_equal(answers.get(timeout=60), elmo.embed([text])[0])  # only then comes the next

    for sentence in elmo.stream(conversation(), latency=0):
        answers.put(sentence)
    with pytest.raises(ConfigError, match="latency must be a finite number of at least 0, found -1"):
        next(elmo.stream(TEXTS, latency=-1))


def test_generators_are_taken(elmo):
    expected = elmo.embed(TEXTS)
    for a, b in zip(elmo.embed(text for text in TEXTS), expected, strict=True):
        assert_equal(a, b)
    np.testing.assert_array_equal(elmo.encode(iter(TEXTS)), elmo.encode(TEXTS))


# Sentence vectors, look-up


def test_pooling_by_hand(elmo):
    sentence = elmo.embed("the cat sat")
    sentence.vectors[...] = [[1, 2, 3, 4, 5, 6], [7, 0, 0, 0, 0, 0], [1, 1, 0, 2, 1, 0]]
    np.testing.assert_array_equal(sentence.pool(), np.float32([3, 1, 1, 2, 2, 2]))
    np.testing.assert_array_equal(sentence.pool("max"), np.float32([7, 2, 3, 4, 5, 6]))
    np.testing.assert_array_equal(sentence.pool("ends"), np.float32([1, 1, 0, 4, 5, 6]))


def test_one_string_has_one_sentence_vector(elmo):
    many = elmo.encode(["the cat sat", "a b"])
    assert many.shape == (2, 6)
    np.testing.assert_allclose(elmo.encode("the cat sat"), many[0], atol=1e-6)


def test_sentence_vectors_of_a_layer(elmo):
    layers = elmo.embed("the cat sat").layers
    np.testing.assert_allclose(elmo.encode("the cat sat", layers="top"), layers[-1].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(
        elmo.encode("the cat sat", layers=[0, -1])[1], layers[-1].mean(axis=0), atol=1e-6
    )
    assert elmo.encode(["the cat sat", ""], layers="all").shape == (2, 3, 6)


def test_a_word_of_several_tokens():
    elmo = Embedder(tiny_bundle(tokenizer="characters"))
    s = elmo.embed("银行提高了利率，银子")
    np.testing.assert_allclose(s["银行"], s.vectors[:2].mean(axis=0), atol=1e-6)
    assert s.find("银") == [(0, 1), (8, 9)]
    given = elmo.embed([["银", "行", "in", "to"]])[0]
    assert given.find("银 行") == given.find("银行") == [(0, 2)]
    assert given.find("into") == []  # a blank that is there counts, but between Chinese characters
    assert given.find("in  to") == [(2, 4)]
    with pytest.raises(KeyError, match="'银' stands at"):
        s["银"]
    with pytest.raises(KeyError, match="'银子弹' is not in"):
        s["银子弹"]
    assert elmo.embed("哈哈哈").find("哈哈") == [(0, 2)]


def test_words_made_of_characters():
    plain, elmo = (Embedder(tiny_bundle(tokenizer="characters"), words=words) for words in (None, "jieba"))
    text = "北京的银行 offers 利率。"
    s, characters = elmo.embed(text), plain.embed(text)
    assert s.tokens == ["北京", "的", "银行", "offers", "利率", "。"]
    assert [text[a:b] for a, b in s.offsets] == s.tokens
    assert s.layers.shape == (3, 6, 6)
    np.testing.assert_allclose(s["银行"], characters["银行"], atol=1e-6)
    np.testing.assert_allclose(s.layers[:, 0], characters.layers[:, :2].mean(axis=1), atol=1e-6)
    assert elmo.embed([["北", "京"]])[0].tokens == ["北", "京"]  # as given
    assert elmo.embed("").layers.shape == (3, 0, 6)


def test_a_sentence_is_shown_in_a_line(elmo):
    assert repr(elmo.embed("the cat")) == "Sentence('the cat', 2 tokens, 3 layers of 6 numbers)"
    assert len(repr(elmo.embed("word " * 1000))) < 120


def test_layers_to_choose_from(elmo):
    sentence = elmo.embed("the cat")
    sentence.layers[...] = np.float32([1, 2, 6])[:, None, None]
    sentence.vectors[...] = 9
    chosen = {name: sentence.select(name) for name in ("all", "top", "average", "mix")}
    assert chosen["all"] is sentence.layers
    assert [chosen[name].shape for name in ("top", "average", "mix")] == [(2, 6)] * 3
    assert [chosen[name][0, 0] for name in ("top", "average", "mix")] == [6, 3, 9]
    with pytest.raises(ConfigError, match="layers must be one of all, top, average, mix, found 'first'"):
        sentence.select("first")


@pytest.mark.parametrize("pooling", ["mean", "max", "ends"])
def test_encode(elmo, pooling):
    vectors = elmo.encode(TEXTS, pooling=pooling)
    assert (vectors.shape, vectors.dtype) == ((len(TEXTS), 6), np.float32)
    np.testing.assert_array_equal(vectors[1], np.zeros(6))  # the empty text
    for row, text in enumerate(TEXTS):
        np.testing.assert_allclose(vectors[row], elmo.embed(text).pool(pooling), atol=1e-5)


def test_lookup(elmo):
    sentence = elmo.embed("the cat saw the bank")
    np.testing.assert_array_equal(sentence["cat"], sentence.vectors[1])
    np.testing.assert_array_equal(sentence[-1], sentence.vectors[4])
    with pytest.raises(KeyError, match=r"'the' stands at \[0, 3\]; take one by its position"):
        sentence["the"]
    with pytest.raises(KeyError, match=r"'dog' is not in \['the', 'cat', 'saw', 'the', 'bank'\]"):
        sentence["dog"]
    with pytest.raises(IndexError):
        sentence[5]


# Carried state


def test_state_is_carried_only_when_asked_for():
    elmo = Embedder(tiny_bundle(), stateful=True)
    fresh = Embedder(tiny_bundle())
    first, second = elmo.embed("the cat"), elmo.embed("the cat")
    assert_equal(first, fresh.embed("the cat"))
    assert abs(first.layers[1:] - second.layers[1:]).max() > 1e-3
    np.testing.assert_array_equal(first.layers[0], second.layers[0])
    elmo.reset()
    assert_equal(elmo.embed("the cat"), first)


def test_rows_carry_their_own_state_and_new_rows_start_from_zero():
    """Rows of a call are its batch, whatever the budget; unused rows keep their state."""
    alone = [Embedder(tiny_bundle(), stateful=True) for _ in range(3)]
    together = Embedder(tiny_bundle(), stateful=True, batch_tokens=5)
    calls = [["the cat sat"], ["a", "the bank of the river", "x y"], ["the cat"], ["b", "c d e", "f"]]
    for call in calls:
        for row, sentence in enumerate(together.embed(call)):
            assert_equal(sentence, alone[row].embed(call[row]))


def test_a_stateful_stream_is_a_call_for_each_sentence():
    one, other = (Embedder(tiny_bundle(), stateful=True) for _ in range(2))
    for text, sentence in zip(TEXTS, one.stream(TEXTS), strict=True):
        assert_equal(sentence, other.embed(text))


def test_a_stateful_call_without_texts():
    elmo = Embedder(tiny_bundle(), stateful=True)
    before = elmo.embed("the cat")
    assert elmo.embed([]) == []
    elmo.reset()
    assert_equal(elmo.embed("the cat"), before)


# Settings


def test_device_auto(elmo):
    automatic = Embedder(tiny_bundle(), device="auto")
    np.testing.assert_allclose(automatic.embed("a b").layers, elmo.embed("a b").layers, atol=1e-4)


def test_tokenizer_by_name(tmp_path):
    folder = write_folder(tmp_path)
    assert elmokit.load(folder).embed("Yes, he can.").tokens == ["Yes", ",", "he", "can", "."]
    assert elmokit.load(folder, tokenizer="whitespace").embed("he can.").tokens == ["he", "can."]
    assert elmokit.load(folder, tokenizer="characters:zh").embed("中文").tokens == ["中", "文"]
    with pytest.raises(ConfigError, match=r"^tokenizer must be .* found 'rule'; did you mean 'rules'\?"):
        elmokit.load(folder, tokenizer="rule")


def test_save_and_load_again(tmp_path, elmo):
    elmo.save(tmp_path / "model")
    again = elmokit.load(tmp_path / "model")
    assert again.tokenizer_spec == elmo.tokenizer_spec
    assert_equal(again.embed("the cat"), elmo.embed("the cat"))


def test_the_package_exports_what_it_says():
    for name in elmokit.__all__:
        assert getattr(elmokit, name) is not None
    with pytest.raises(AttributeError, match="module 'elmokit' has no attribute 'nothing'"):
        elmokit.nothing  # noqa: B018


def test_a_saved_model_keeps_the_tokenizer_that_was_chosen(tmp_path):
    Embedder(tiny_bundle(), tokenizer="characters").save(tmp_path / "model")
    assert elmokit.load(tmp_path / "model").embed("中文").tokens == ["中", "文"]
