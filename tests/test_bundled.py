"""The models that come with the package: whole, small, and good for something."""

import tomllib
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import elmokit
from elmokit.formats.load import BUNDLED, bundled_names
from elmokit.formats.native import file_sha256, read_json
from elmokit.language_model import LanguageModel

ROOT = Path(__file__).parent.parent
MOST_BYTES = 26_000_000


bundled = cache(elmokit.load)


def test_what_is_bundled():
    assert bundled_names() == ["en", "zh"]


@pytest.mark.parametrize("name", bundled_names())
def test_files_are_those_that_were_written_and_not_too_large(name):
    folder = BUNDLED / name
    digests = read_json(folder / "config.json")["sha256"]
    assert {file: file_sha256(folder / file) for file in digests} == digests
    assert sum(file.stat().st_size for file in folder.iterdir()) <= MOST_BYTES


@pytest.mark.parametrize("name", bundled_names())
def test_a_bundled_model_has_its_card_and_curve(name):
    card = (BUNDLED / name / "README.md").read_text(encoding="utf-8")
    for part in ("## Data and licences", "## Perplexity", "## Limits", "elmokit pretrain"):
        assert part in card
    assert (BUNDLED / name / "curve.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("name", "text", "tokens"),
    [
        ("en", "The bank raised its rates.", ["The", "bank", "raised", "its", "rates", "."]),
        ("zh", "苹果在2007年发布iPhone。", ["苹", "果", "在", "2007", "年", "发", "布", "iPhone", "。"]),
    ],
)
def test_vectors(name, text, tokens):
    sentence = bundled(name).embed(text)
    assert sentence.tokens == tokens
    assert sentence.layers.shape == (3, len(tokens), 384)
    assert sentence.layers.dtype == np.float32


WORDS = tomllib.loads((ROOT / "examples" / "demo_words.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("name", "word"), [(name, word) for name in WORDS for word in WORDS[name]])
def test_senses_are_told_apart_by_the_context(name, word):
    """Uses of one sense of a word of the demo are nearer to each other than to those of the other.

    The Chinese model, trained for half as long, tells them apart less clearly.
    """
    senses = [
        np.stack([_vector(sentence, word) for sentence in bundled(name).embed(several)])
        for several in WORDS[name][word].values()
    ]
    first, second = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in senses)
    within = [
        cosines[~np.eye(len(cosines), dtype=bool)].mean() for cosines in (first @ first.T, second @ second.T)
    ]
    assert np.mean(within) > (first @ second.T).mean() + {"en": 0.02, "zh": 0.005}[name]


def _vector(sentence, word):
    """The mean over the word's tokens: Chinese ones are characters."""
    start = sentence.text.index(word)
    rows = [row for row, (a, b) in enumerate(sentence.offsets) if start <= a and b <= start + len(word)]
    return sentence.vectors[rows].mean(axis=0)


def test_the_english_language_model():
    model = LanguageModel.load("en")
    (gap,) = model.fill("In the [MASK] of 1945 the war ended .", top=10)
    assert {"spring", "summer", "autumn", "winter"} <= {candidate.word for candidate in gap}
    good, bad = (model.score(text) for text in ("The dogs are in the house .", "The dogs is in the house ."))
    assert good.forward_total + good.backward_total > bad.forward_total + bad.backward_total
    found = model.perplexity(
        ["The city is the capital of the province .", "He was born in London in 1920 and died in 1985 ."]
    )
    assert found.mean < 30


def test_the_chinese_language_model():
    model = LanguageModel.load("zh")
    (gap,) = model.fill("中华人民共[MASK]国成立于1949年。", top=3)
    assert gap[0].word == "和"
    good, bad = (model.score(text) for text in ("他出生于北京。", "他北京于出生。"))
    assert good.forward_total + good.backward_total > bad.forward_total + bad.backward_total
