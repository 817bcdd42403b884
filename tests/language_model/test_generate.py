"""Samples of the forward model."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elmokit import ConfigError
from elmokit.language_model import continuations
from tests.tiny import WORDS


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_a_seed_gives_a_sentence_again(by_frequency):
    """With two equally likely words, other seeds give other sentences on every machine."""
    lm = by_frequency(begin=0.1, end=1e-9, unknown=0.1, a=0.4, b=0.4)
    sentences = [lm.generate(generator=seeded(seed), max_tokens=50) for seed in (0, 0, 1, 2, 3)]
    assert sentences[0] == sentences[1]
    assert len({tuple(sentence) for sentence in sentences}) == 4


@settings(max_examples=8)
@given(prompt=st.lists(st.sampled_from([*WORDS[3:], "zebra"]), max_size=5), length=st.integers(0, 5))
def test_at_nought_degrees_each_word_is_the_likeliest_of_the_whole_sentence(random_lm, prompt, length):
    """The state is carried from word to word: the same words as from scoring each sentence anew."""
    sentence = random_lm.generate(prompt, generator=seeded(), temperature=0, max_tokens=length)
    assert sentence[: len(prompt)] == prompt
    for end in range(len(prompt), len(sentence)):
        left = sentence[:end]
        scores = {word: random_lm.score([*left, word]).forward[-1] for word in WORDS[3:]}
        scores["</S>"] = random_lm.score(left).end
        assert scores[sentence[end]] == pytest.approx(max(scores.values()), abs=1e-5)
    assert len(sentence) <= len(prompt) + length


def test_the_end_ends_and_specials_are_never_drawn(by_frequency):
    lm = by_frequency(begin=100.0, end=0.2, unknown=100.0, a=0.3, b=0.5)
    for seed in range(30):
        sentence = lm.generate("b", generator=seeded(seed), max_tokens=50)
        assert set(sentence) <= {"a", "b"}
        assert sentence[0] == "b"
        assert len(sentence) < 51
    assert lm.generate(generator=seeded(), max_tokens=0) == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": -1.0}, "temperature must be a finite number of at least 0, found -1.0"),
        ({"top_p": 1.1}, "top_p must be a finite number above 0 and at most 1, found 1.1"),
        ({"max_tokens": -1}, "max_tokens must be a whole number of at least 0, found -1"),
    ],
)
def test_numbers_out_of_range(random_lm, settings, message):
    with pytest.raises(ConfigError, match=f"^{message}"):
        random_lm.generate(generator=seeded(), **settings)


def test_without_a_generator_sentences_differ(by_frequency):
    lm = by_frequency(begin=0.1, end=1e-9, unknown=0.1, a=0.4, b=0.4)
    assert len({tuple(lm.generate(max_tokens=100)) for _ in range(3)}) == 3


def test_no_run_of_words_is_drawn_twice(by_frequency):
    lm = by_frequency(begin=0.1, end=1e-9, unknown=0.1, a=0.9, b=0.1)
    sentence = lm.generate("a", generator=seeded(), max_tokens=6, no_repeat=2)
    new = sentence[1:]
    pairs = list(pairwise(new))
    assert len(set(pairs)) == len(pairs)
    assert len(lm.generate("a", generator=seeded(), max_tokens=6)) == 7


@pytest.mark.parametrize("prompt", [[], ["zebra", WORDS[3]]])
def test_likely_continuations_have_the_scores_of_their_sentences(random_lm, prompt):
    found = continuations(random_lm, prompt, beam=4, max_tokens=3)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    for one in found:
        assert one.tokens[: len(prompt)] == prompt
        scored = random_lm.score(one.tokens)
        expected = sum(scored.forward[len(prompt) :]) + scored.end
        assert one.log_probability == pytest.approx(expected, abs=1e-4)
    new = len(found[0].tokens) - len(prompt)
    assert new <= 3
    assert found[0].score == pytest.approx(found[0].log_probability / ((6 + new) / 6), rel=1e-5)
    with pytest.raises(ConfigError, match="beam"):
        continuations(random_lm, beam=0)
