"""Words for gaps."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elmokit import ConfigError
from elmokit.language_model import MASK, LanguageModel
from elmokit.model import BiLM, BiLMConfig, Softmax, WordConfig
from elmokit.text import TokenizerSpec, Vocabulary
from tests.tiny import WORDS, tiny_model

CONTEXT = st.lists(st.sampled_from([*WORDS[3:], "zebra"]), max_size=4)


@settings(max_examples=10)
@given(left=CONTEXT, right=CONTEXT)
def test_both_sides_are_the_scores_of_the_filled_sentence(random_lm, left, right):
    (gap,) = random_lm.fill([*left, MASK, *right], top=100)
    weights = {}
    for candidate in gap:
        score = random_lm.score([*left, candidate.word, *right])
        at = len(left)
        assert math.log(candidate.forward) == pytest.approx(score.forward[at], abs=1e-4)
        assert math.log(candidate.backward) == pytest.approx(score.backward[at], abs=1e-4)
        row = WORDS.index(candidate.word)
        unigram = math.log((row + 2) / (row + 1))
        weights[candidate.word] = candidate.forward * candidate.backward / unigram
    for candidate in gap:
        expected = weights[candidate.word] / sum(weights.values())
        assert candidate.probability == pytest.approx(expected, rel=1e-3)


def test_all_words_once_the_likeliest_first_and_no_specials(random_lm):
    (gap,) = random_lm.fill("the [MASK] sat", top=100)
    assert sorted(candidate.word for candidate in gap) == sorted(WORDS[3:])
    probabilities = [candidate.probability for candidate in gap]
    assert probabilities == sorted(probabilities, reverse=True)
    assert sum(probabilities) == pytest.approx(1)
    assert random_lm.fill("the [MASK] sat", top=2) == [gap[:2]]


def test_a_word_that_stands_on_two_lines_comes_once(random_lm):
    words = (*WORDS[:-1], "the")
    lm = LanguageModel(
        tiny_model(scale=1.0), random_lm.softmax, Vocabulary(words), TokenizerSpec(name="whitespace")
    )
    (gap,) = lm.fill("[MASK]", top=100)
    assert sorted(candidate.word for candidate in gap) == sorted(set(words) - {"<S>", "</S>", "<UNK>"})


def test_of_several_gaps_the_surest_is_filled_first(random_lm):
    first, second = random_lm.fill("the [MASK] sat [MASK] bank", top=3)
    open_gaps = [
        random_lm.fill(f"the {a} sat {b} bank", top=3)[0] for a, b in [(MASK, "<UNK>"), ("<UNK>", MASK)]
    ]
    if open_gaps[0][0].probability > open_gaps[1][0].probability:
        assert first == open_gaps[0]
        assert second == random_lm.fill(f"the {first[0].word} sat [MASK] bank", top=3)[0]
    else:
        assert second == open_gaps[1]
        assert first == random_lm.fill(f"the [MASK] sat {second[0].word} bank", top=3)[0]


def test_the_gap_survives_the_tokenizer(random_lm):
    rules = TokenizerSpec(name="rules", language="en")
    lm = LanguageModel(tiny_model(scale=1.0), random_lm.softmax, Vocabulary(WORDS), rules)
    assert lm.fill("The [MASK]'s né.") == lm.fill(["The", MASK, "'s", "né", "."])
    assert len(lm.fill("[MASK][MASK]")) == 2


@pytest.mark.parametrize(
    ("sentence", "top", "message"),
    [
        ("the cat", 5, r"^expected \[MASK\] in the sentence, found none: 'the cat'"),
        ("", 5, r"^expected \[MASK\] in the sentence, found none: ''"),
        ("the [mask]", 5, r"^expected \[MASK\]"),
        ("the [MASK]", 0, "^top must be a whole number of at least 1, found 0"),
    ],
)
def test_what_is_refused(random_lm, sentence, top, message):
    with pytest.raises(ConfigError, match=message):
        random_lm.fill(sentence, top=top)


def trained(sentences, words, *, steps=80):
    """A small word model that has learnt some sentences of equal length."""
    config = BiLMConfig(
        encoder=WordConfig(num_words=len(words)), cell_dim=16, projection_dim=8, num_layers=1, projection=True
    )
    model, vocabulary = BiLM(config), Vocabulary(words)
    random = torch.Generator().manual_seed(0)
    weight, bias = torch.randn(len(words), 8, generator=random), torch.zeros(len(words))
    parameters = [*model.parameters(), weight.requires_grad_(), bias.requires_grad_()]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=random))
    ids = torch.tensor([[vocabulary.id(w) for w in ["<S>", *s.split(), "</S>"]] for s in sentences])  # (B, T)
    lengths = torch.full((len(ids),), ids.shape[1])
    optimizer = torch.optim.Adam(parameters, lr=0.03)
    for _ in range(steps):
        top = model(model.encoder(ids.flatten()), lengths)[0][-1].view(*ids.shape, 16)
        hidden = torch.cat([top[:, :-1, :8], top[:, 1:, 8:]])  # (2B, T-1, P)
        targets = torch.cat([ids[:, 1:], ids[:, :-1]])  # (2B, T-1)
        logits = hidden @ weight.T + bias
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()).backward()
        optimizer.step()
    softmax = Softmax(weight.detach(), bias.detach())
    return LanguageModel(model.eval(), softmax, vocabulary, TokenizerSpec(name="whitespace"))


def test_a_trained_model_combines_what_each_side_knows():
    """Each side leaves two words open, both sides one: cats eat fish, cats drink milk, …"""
    sentences = ["cats fish eaten", "cats milk drunk", "dogs meat eaten", "dogs water drunk"]
    words = ["<S>", "</S>", "<UNK>", *dict.fromkeys(" ".join(sentences).split())]
    lm = trained(sentences, words)
    for sentence in sentences:
        subject, word, verb = sentence.split()
        ((best, *_),) = lm.fill([subject, MASK, verb])
        assert best.word == word
        assert best.probability > 0.9
        assert best.forward == pytest.approx(0.5, abs=0.1)
        assert best.backward == pytest.approx(0.5, abs=0.1)
    assert lm.perplexity(sentences).mean < 2
    assert lm.score("cats fish eaten").total > lm.score("cats water eaten").total + 2
    drawn = {" ".join(lm.generate(generator=torch.Generator().manual_seed(s), top_p=0.9)) for s in range(20)}
    assert drawn == set(sentences)
