"""A text in a script that the model has not read is warned about, once."""

import logging

import pytest

from elmokit.doctor import diagnose_text
from elmokit.embed import Embedder
from elmokit.language_model import LanguageModel
from tests.tiny import tiny_bundle, write_folder

LATIN = ("<S>", "</S>", "<UNK>", "the", "cat", "sat", "bank")


@pytest.mark.parametrize(
    ("texts", "warnings"),
    [
        (["我喜欢银行", "他也喜欢"], 1),
        ([["我", "喜欢", "银行"]], 1),
        (["the 银行 is closed", "the cat", "", "1 + 1 = 2"], 0),
        (["это банк"], 1),
    ],
)
def test_a_foreign_text(tmp_path, caplog, texts, warnings):
    folder = write_folder(tmp_path / "model", vocabulary=LATIN, softmax=True)
    import elmokit

    embedder = elmokit.load(folder, tokenizer="characters")
    with caplog.at_level(logging.WARNING):
        embedder.embed(texts)
    assert caplog.text.count("but the model was trained on Latin text") == warnings
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        LanguageModel.load(folder, tokenizer="characters").score(texts[0])
    assert caplog.text.count("but the model was trained on Latin text") == warnings


def test_a_model_without_vocabulary_does_not_know(caplog):
    with caplog.at_level(logging.WARNING):
        Embedder(tiny_bundle()).embed("我喜欢银行")
    assert "trained on" not in caplog.text


def test_the_doctor_says_so():
    (finding,) = diagnose_text(["我喜欢银行。"] * 3, known=frozenset(["Latin"]))
    assert finding.message.startswith("another script: most words are Chinese, but the model was trained")
    assert diagnose_text(["我喜欢银行。"], known=frozenset(["Latin", "Chinese"]))[0].level == "ok"
