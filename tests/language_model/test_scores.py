"""Scores and perplexity: by hand, against the oracle, and whatever the batches."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmokit import DataError
from elmokit.embed import reader
from elmokit.formats import load_model, save_model
from elmokit.language_model import LanguageModel, Perplexity
from elmokit.model import Softmax
from elmokit.text import TokenizerSpec, Vocabulary
from tests.reference import Reference
from tests.tiny import WORDS, tiny_arrays, tiny_config, tiny_model, tiny_options, write_folder

SENTENCES = st.lists(
    st.lists(st.sampled_from([*WORDS, "zebra", "x" * 60]), max_size=7), min_size=1, max_size=12
)
TEXT = [["the", "cat", "sat"], [], ["the"], ["zebra", "né", "中", "bank"], ["x" * 80, "<UNK>", "", "the"]]


# By hand


def test_two_words_by_hand(by_frequency):
    """Forward ½·⅛·¼ = 2⁻⁶ for a, b, </S>; backward 1/16·½·⅛ = 2⁻⁸ for <S>, a, b."""
    lm = by_frequency(begin=1 / 16, end=1 / 4, unknown=1 / 16, a=1 / 2, b=1 / 8)
    score = lm.score("a b")
    assert score.forward == pytest.approx([-math.log(2), -math.log(8)])
    assert score.backward == pytest.approx([-math.log(2), -math.log(8)])
    assert (score.end, score.begin) == pytest.approx((-math.log(4), -math.log(16)))
    assert score.forward_total == pytest.approx(-6 * math.log(2))
    assert score.backward_total == pytest.approx(-8 * math.log(2))
    assert score.total == pytest.approx(-7 * math.log(2))
    assert score.perplexity == pytest.approx(2 ** (7 / 3))
    assert score.most_surprising(1) == [1]
    found = lm.perplexity([["a", "b"]])
    assert (found.forward, found.backward) == pytest.approx((4, 2 ** (8 / 3)))
    assert found.mean == pytest.approx(2 ** (7 / 3))
    assert (found.sentences, found.words, found.tokens, found.oov_rate) == (1, 2, 3, 0)
    assert found.bits_per_character == pytest.approx(7 / 4)  # "a b" and the line end


def test_words_out_of_vocabulary_by_hand(by_frequency):
    """né is three bytes and an end, each one of 257; the loss pays for <UNK> alone."""
    lm = by_frequency(begin=1 / 16, end=1 / 4, unknown=1 / 16, a=1 / 2, b=1 / 8)
    score = lm.score(["né", "a"])
    assert score.known == (False, True)
    assert score.forward == pytest.approx([-math.log(16), -math.log(2)])
    found = lm.perplexity([["né", "a"]])
    assert found.oov_rate == 0.5
    bits = ((4 + 1 + 2) + (4 + 4 + 1)) / 2 + 4 * math.log2(257)
    assert found.bits_per_character == pytest.approx(bits / 5)


def test_a_small_vocabulary_has_low_perplexity_but_not_few_bits(by_frequency):
    text = [["cat", "dog", "cat", "bird"]] * 3
    small = by_frequency(begin=0.01, end=0.19, unknown=0.8).perplexity(text)
    large = by_frequency(begin=0.01, end=0.19, unknown=0.02, cat=0.4, dog=0.2, bird=0.18).perplexity(text)
    assert small.mean < large.mean
    assert small.bits_per_character > 2 * large.bits_per_character


@pytest.mark.parametrize("cutoffs", [(), (4, 8)])
def test_a_uniform_model_has_the_perplexity_of_its_size(cutoffs):
    size = len(WORDS)
    clusters = ()
    bias = torch.zeros(size)
    if cutoffs:  # a cluster is as likely as its words are many
        clusters = (torch.zeros(2, 3), torch.tensor([4.0, size - 8.0]).log())
    lm = LanguageModel(
        tiny_model(),
        Softmax(torch.zeros(size, 3), bias, cutoffs, *clusters),
        Vocabulary(WORDS),
        TokenizerSpec(name="whitespace"),
    )
    found = lm.perplexity(TEXT)
    assert (found.forward, found.backward, found.mean) == pytest.approx((size,) * 3, rel=1e-6)
    assert (found.sentences, found.words, found.tokens) == (4, 12, 16)


# Against the oracle

SHAPES = {
    "as published": {},
    "one layer": {"num_layers": 1},
    "three layers without skips": {"num_layers": 3, "skip_connections": False},
    "no state projection": {"cell_dim": 3, "projection": False, "projection_clip": None},
    "words": {"words": len(WORDS)},
}


def plain_scores(top, tokens, logits_to_logs):
    """Log-probabilities of words and ends in float64, after FORMATS.md section 10, one position at a time."""
    ids = [WORDS.index(token) if token in WORDS else 2 for token in ["<S>", *tokens, "</S>"]]
    dim = top.shape[1] // 2
    forward = [logits_to_logs(top[t, :dim])[ids[t + 1]] for t in range(len(ids) - 1)]
    backward = [logits_to_logs(top[t, dim:])[ids[t - 1]] for t in range(1, len(ids))]
    return forward, backward


def log_softmax(logits):
    return logits - np.log(np.exp(logits - logits.max()).sum()) - logits.max()


@pytest.mark.parametrize("changes", SHAPES.values(), ids=SHAPES.keys())
def test_every_shape_has_the_oracles_scores(changes, tmp_path):
    config = tiny_config(**changes)
    arrays = tiny_arrays(config, scale=0.6)
    folder = write_folder(tmp_path, config, arrays=arrays, vocabulary=WORDS, softmax=True)
    oracle = Reference(arrays, tiny_options(config), WORDS)
    softmax = load_model(folder).softmax.read()
    weight, bias = softmax.weight.numpy().astype(float), softmax.bias.numpy().astype(float)
    losses = [0.0, 0.0]
    lm = LanguageModel.load(folder)
    for tokens, score in zip(TEXT, lm.stream(TEXT), strict=True):
        top = oracle.embed(tokens)[-1]
        forward, backward = plain_scores(top, tokens, lambda h: log_softmax(weight @ h + bias))
        np.testing.assert_allclose([*score.forward, score.end], forward, atol=1e-5, rtol=0)
        np.testing.assert_allclose([score.begin, *score.backward], backward, atol=1e-5, rtol=0)
        if tokens:
            losses = [losses[0] - sum(forward), losses[1] - sum(backward)]
    found = lm.perplexity(TEXT)
    means = [loss / found.tokens for loss in losses]
    assert found.forward == pytest.approx(math.exp(means[0]), rel=1e-5)
    assert found.backward == pytest.approx(math.exp(means[1]), rel=1e-5)
    assert found.mean == pytest.approx(math.exp(sum(means) / 2), rel=1e-5)


def test_an_adaptive_softmax_has_the_oracles_scores(tmp_path):
    config = tiny_config()
    arrays = tiny_arrays(config, scale=0.6)
    bundle = load_model(write_folder(tmp_path / "hdf5", config, arrays=arrays, vocabulary=WORDS))
    random = np.random.default_rng(3)
    weight, bias, to_cluster, of_cluster = (random.normal(size=s) for s in [(10, 3), 10, (2, 3), 2])

    def logs(h):
        inside = weight @ h + bias
        head = log_softmax(np.concatenate([inside[:4], to_cluster @ h + of_cluster]))
        return np.concatenate(
            [head[:4], head[4] + log_softmax(inside[4:7]), head[5] + log_softmax(inside[7:])]
        )

    weight32, bias32, *clusters = (
        torch.from_numpy(x).float() for x in (weight, bias, to_cluster, of_cluster)
    )
    softmax = Softmax(weight32, bias32, (4, 7), *clusters)
    lm = LanguageModel(bundle.model, softmax, bundle.vocabulary, bundle.tokenizer)
    oracle = Reference(arrays, tiny_options(config))
    for tokens, score in zip(TEXT, lm.stream(TEXT), strict=True):
        forward, backward = plain_scores(oracle.embed(tokens)[-1], tokens, logs)
        np.testing.assert_allclose([*score.forward, score.end], forward, atol=1e-5, rtol=0)
        np.testing.assert_allclose([score.begin, *score.backward], backward, atol=1e-5, rtol=0)


# Properties


def numbers(score):
    return [*score.forward, *score.backward, score.end, score.begin]


@given(sentences=SENTENCES, batch_tokens=st.integers(1, 60))
def test_batches_and_neighbours_change_nothing(random_lm, sentences, batch_tokens):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random_lm, "batch_tokens", batch_tokens)
        together = list(random_lm.stream(sentences))
    for sentence, score in zip(sentences, together, strict=True):
        assert score.tokens == tuple(sentence)
        assert numbers(score) == pytest.approx(numbers(random_lm.score(sentence)), abs=1e-5)


@given(sentences=SENTENCES.filter(any), data=st.data())
def test_order_does_not_change_the_perplexity(random_lm, sentences, data):
    shuffled = data.draw(st.permutations(sentences))
    found, expected = random_lm.perplexity(shuffled), random_lm.perplexity(sentences)
    assert found.to_dict() == pytest.approx(expected.to_dict(), rel=1e-5)


@given(
    left=st.lists(st.sampled_from(WORDS[3:]), max_size=4),
    right=st.lists(st.sampled_from(WORDS[3:]), max_size=4),
)
def test_a_direction_never_sees_its_target_or_beyond(random_lm, left, right):
    """Changing a word changes no forward number before or at it, but its own; and so from the right."""
    one, other = (random_lm.score([*left, word, *right]) for word in ("cat", "bank"))
    at = len(left)
    assert one.forward[:at] == pytest.approx(other.forward[:at], abs=1e-5)
    assert (one.begin == other.begin) is False
    assert one.backward[at + 1 :] == pytest.approx(other.backward[at + 1 :], abs=1e-5)


def test_all_ways_to_go_on_sum_to_one(random_lm):
    """The words after "the", each by its score, and the end."""
    words = [word for word in WORDS if word != "</S>"]
    after = [math.exp(random_lm.score(["the", word]).forward[1]) for word in words]
    assert sum(after) + math.exp(random_lm.score(["the"]).end) == pytest.approx(1, abs=1e-5)


def test_the_text_may_be_endless(random_lm, monkeypatch):
    monkeypatch.setattr(reader, "_WINDOW_BATCHES", 2)
    monkeypatch.setattr(random_lm, "batch_tokens", 8)
    taken = 0

    def endless():
        nonlocal taken
        while True:
            taken += 1
            yield "the cat"

    for number, _ in zip(range(20), random_lm.stream(endless()), strict=False):
        assert taken <= number + 4


def test_a_model_in_training_is_left_as_it_was():
    model = tiny_model().train()
    weight = torch.nn.Parameter(torch.zeros(len(WORDS), 3))
    softmax = Softmax(weight, torch.nn.Parameter(torch.zeros(len(WORDS))))
    lm = LanguageModel(model, softmax, Vocabulary(WORDS), TokenizerSpec(name="whitespace"))
    assert lm.perplexity(TEXT).mean == pytest.approx(len(WORDS))
    assert model.training
    assert weight.requires_grad
    assert all(parameter.requires_grad and parameter.grad is None for parameter in model.parameters())


def test_strings_go_through_the_models_tokenizer(random_lm):
    lm = LanguageModel(
        tiny_model(scale=1.0),
        random_lm.softmax,
        Vocabulary(WORDS),
        TokenizerSpec(name="rules", language="en"),
    )
    score = lm.score("The bank, né?")
    assert (score.text, score.tokens) == ("The bank, né?", ("The", "bank", ",", "né", "?"))
    assert numbers(score) == pytest.approx(numbers(lm.score(["The", "bank", ",", "né", "?"])))


def test_precision_of_the_network(random_lm, tmp_path):
    save_model(load_model(write_folder(tmp_path / "a", vocabulary=WORDS, softmax=True)), tmp_path / "b")
    exact, rough = (
        LanguageModel.load(tmp_path / "b", precision=name).perplexity(TEXT) for name in ("float32", "int8")
    )
    assert rough.mean == pytest.approx(exact.mean, rel=0.1)


def test_results_are_plain_data(random_lm):
    score = json.loads(json.dumps(random_lm.score("the zebra").to_dict()))
    assert score["tokens"] == ["the", "zebra"]
    assert score["known"] == [True, False]
    assert score["total"] == pytest.approx((score["forward_total"] + score["backward_total"]) / 2)
    found = random_lm.perplexity(["the cat"])
    assert Perplexity(**json.loads(json.dumps(found.to_dict()))) == found


def test_an_impossible_text_is_infinitely_perplexing(by_frequency):
    lm = by_frequency(begin=1.0, end=1.0, unknown=1.0, a=1.0)
    lm.softmax.bias[3] = -1e5
    assert lm.perplexity(["a"]).mean == math.inf


@pytest.mark.parametrize("text", [[], [[]], ["", " "]])
def test_a_text_without_words(random_lm, text):
    with pytest.raises(DataError, match=r"^the text has no words, expected at least one sentence"):
        random_lm.perplexity(text)


def test_tokens_that_are_cut_are_told_of(caplog, random_lm):
    lm = LanguageModel(tiny_model(), random_lm.softmax, Vocabulary(WORDS), TokenizerSpec(name="whitespace"))
    lm.perplexity(["x" * 60, "y" * 60])
    (record,) = caplog.records
    assert "more than 48 bytes, of which the model reads the first 48 only" in record.getMessage()
