"""The models that come with the package: whole, small, and good for something."""

import shutil
import tomllib
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import elmokit
from elmokit.formats.load import BUNDLED, BUNDLED_TASKS, bundled_names, bundled_task_names
from elmokit.formats.native import file_sha256, read_json
from elmokit.language_model import LanguageModel

ROOT = Path(__file__).parent.parent
MOST_BYTES = 26_000_000
MOST_TASK_BYTES = 3_000_000  # beside the encoder


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


@pytest.mark.parametrize("name", bundled_task_names())
def test_a_bundled_task_model_is_small_and_belongs_to_a_bundled_encoder(name):
    folder = BUNDLED_TASKS / name
    assert sum(file.stat().st_size for file in folder.iterdir()) <= MOST_TASK_BYTES
    card = (folder / "README.md").read_text(encoding="utf-8")
    for part in (
        "license: cc-by",
        "## Data and licences",
        "## Scores",
        "## Limits",
        "recipes/bundled_tasks.py",
    ):
        assert part in card
    own, encoder = elmokit.load_task(name).encoders  # it refuses one with another fingerprint
    assert (own.spec, encoder.spec) == ("chars", name.rpartition("-")[2])
    assert encoder.fingerprint() in card


def test_a_bundled_task_model_refuses_another_encoder(tmp_path, monkeypatch):
    folder = shutil.copytree(BUNDLED_TASKS / "ner-en", tmp_path / "ner")
    config = folder / "config.json"
    fingerprint = read_json(config)["encoders"][1]["fingerprint"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "en").mkdir()  # whatever is here, the name is that of the bundled encoder
    assert elmokit.load_task("ner").predict("Ada lived in London.").spans
    (tmp_path / "ner-en").mkdir()
    with pytest.raises(elmokit.ModelFileError, match=r"holds no task model.*; it hides the bundled ner-en"):
        elmokit.load_task("ner-en")
    config.write_text(config.read_text().replace(fingerprint, "0" * 32))
    with pytest.raises(elmokit.ModelFileError, match=r"encoder en is another one, .* use the one it was"):
        elmokit.load_task("ner")


# For each task model a text, and some of what is to be found in it: labels of spans.
FOUND = {
    "ner-en": ("Angela Merkel met Emmanuel Macron in Paris.", {("PER", "Emmanuel Macron"), ("LOC", "Paris")}),
    "ner-zh": ("鲁迅曾在北京大学任教。", {("PER", "鲁迅"), ("ORG", "北京大学")}),
    "pos-en": ("The children ate the cake.", {"NOUN", "VERB", "DET", "PUNCT"}),
    "roles-en": ("The children ate the cake.", {("ARG0", "The children"), ("ARG1", "the cake")}),
}


def test_every_bundled_task_model_is_tried():
    assert {"ner-en", "ner-zh", "roles-en"} <= set(bundled_task_names()) <= FOUND.keys()


@pytest.mark.parametrize("name", bundled_task_names())
def test_a_bundled_task_model_finds_what_it_should(name):
    text, wanted = FOUND[name]
    prediction = elmokit.load_task(name).predict(text)
    if name == "pos-en":
        assert wanted <= set(prediction.tags)
        return
    frames = getattr(prediction, "frames", None)
    spans = prediction.spans if frames is None else frames[0].roles
    assert wanted <= {(span.label, span.text) for span in spans}


def test_a_task_model_is_no_embedder():
    with pytest.raises(elmokit.ModelFileError, match="ner-en is a task model, not an ELMo model"):
        elmokit.load("ner-en")
    assert elmokit.describe("ner-en")["task"] == "tagger"
