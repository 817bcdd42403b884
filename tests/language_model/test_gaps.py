"""Gaps of a whole text: accuracy, and the weights that combine both directions."""

import math

import pytest

from elmokit import DataError
from elmokit.formats import ModelBundle, SoftmaxFile, load_model, save_model
from elmokit.language_model import MASK, LanguageModel, gaps_file
from elmokit.model import FillWeights
from elmokit.text import TokenizerSpec, Vocabulary
from tests.tiny import WORDS, tiny_model

TEXT = ["the cat sat on the bank", "the bank zebra", "cat", "on the mat the cat sat"]


def likelihood(lm, sentences):
    """The mean log-probability of the words of some sentences, each filled in by `fill`."""
    logs = []
    for sentence in sentences:
        words = sentence.split()
        for at, word in enumerate(words):
            (gap,) = lm.fill([*words[:at], MASK, *words[at + 1 :]], top=100)
            logs += [math.log(found.probability) for found in gap if found.word == word]
    return sum(logs) / len(logs)


@pytest.fixture
def lm(random_lm):
    """A model of its own for each test, because fitting changes it."""
    return LanguageModel(
        tiny_model(scale=1.0), random_lm.softmax, Vocabulary(WORDS), TokenizerSpec(name="whitespace")
    )


def test_accuracy_is_that_of_filling_each_word(lm):
    found, ranks = lm.gaps(TEXT), []
    for sentence in TEXT:
        words = sentence.split()
        for at, word in enumerate(words):
            (gap,) = lm.fill([*words[:at], MASK, *words[at + 1 :]], top=100)
            candidates = [candidate.word for candidate in gap]
            ranks.append(candidates.index(word) if word in candidates else math.inf)
    assert found.words == len(ranks) == 16
    assert found.top1 == pytest.approx(sum(rank < 1 for rank in ranks) / 16)
    assert found.top5 == pytest.approx(sum(rank < 5 for rank in ranks) / 16)
    assert found.oov_rate == pytest.approx(sum(rank == math.inf for rank in ranks) / 16)


def test_fitted_weights_make_the_text_as_likely_as_can_be(lm):
    before = likelihood(lm, TEXT)
    fitted = lm.fit_fill(TEXT * 100)
    best = likelihood(lm, TEXT)
    assert best > before
    for name, value in fitted.to_dict().items():
        for change in (-0.2, 0.2):
            nearby = FillWeights(**(fitted.to_dict() | {name: value + change}))
            other = LanguageModel(
                tiny_model(scale=1.0), lm.softmax, lm.vocabulary, TokenizerSpec(name="whitespace"),
                fill_weights=nearby,
            )  # fmt: skip
            assert likelihood(other, TEXT) < best


def test_weights_are_saved_with_the_model(lm, tmp_path):
    weights = FillWeights(0.8, 0.75, -0.5)
    softmax = SoftmaxFile(len(WORDS), lambda: lm.softmax)
    bundle = ModelBundle(
        tiny_model(scale=1.0), TokenizerSpec(name="whitespace"), lm.vocabulary, softmax, fill_weights=weights
    )
    save_model(bundle, tmp_path / "model")
    assert load_model(tmp_path / "model").fill_weights == weights
    opened, default = LanguageModel.load(tmp_path / "model"), lm.fill("the [MASK] sat")
    assert opened.fill("the [MASK] sat") != default
    lm._gap_filler.weights = weights
    assert [word.word for word in opened.fill("the [MASK] sat")[0]] == [
        word.word for word in lm.fill("the [MASK] sat")[0]
    ]


def test_a_text_without_words_is_refused(lm, tmp_path):
    (tmp_path / "text.txt").write_text("\n\n")
    with pytest.raises(DataError, match="no words"):
        gaps_file(lm, tmp_path / "text.txt")
    assert lm.fit_fill([]) == FillWeights()


def test_batches_do_not_matter(lm):
    lm.batch_tokens = 8
    small = lm.gaps(TEXT)
    lm.batch_tokens = 8192
    assert lm.gaps(TEXT) == small
