"""The models that come with the package: whole, small, and good for something."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

import elmokit
from elmokit.formats.load import BUNDLED, bundled_names
from elmokit.formats.native import file_sha256, read_json
from elmokit.language_model import LanguageModel

ROOT = Path(__file__).parent.parent
MOST_BYTES = 25_000_000


@pytest.fixture(scope="module")
def english():
    return elmokit.load("en")


def test_what_is_bundled():
    assert bundled_names() == ["en"]


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


def test_english_vectors(english):
    sentence = english.embed("The bank raised its rates.")
    assert sentence.tokens == ["The", "bank", "raised", "its", "rates", "."]
    assert sentence.layers.shape == (3, 6, 384)
    assert sentence.layers.dtype == np.float32


WORDS = tomllib.loads((ROOT / "examples" / "demo_words.toml").read_text(encoding="utf-8"))["en"]


@pytest.mark.parametrize("word", WORDS)
def test_senses_are_told_apart_by_the_context(english, word):
    """Uses of one sense of a word of the demo are nearer to each other than to those of the other."""
    senses = [
        np.stack([sentence[word] for sentence in english.embed(several)]) for several in WORDS[word].values()
    ]
    first, second = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in senses)
    within = [
        cosines[~np.eye(len(cosines), dtype=bool)].mean() for cosines in (first @ first.T, second @ second.T)
    ]
    assert np.mean(within) > (first @ second.T).mean() + 0.02


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
