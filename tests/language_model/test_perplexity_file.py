"""The perplexity of files."""

import gzip

import pytest

from elmokit import ConfigError, DataError
from elmokit.formats import load_model
from elmokit.language_model import LanguageModel, perplexity_file
from elmokit.text import TokenizerSpec
from tests.tiny import WORDS, write_folder


@pytest.fixture(scope="module")
def lm(tmp_path_factory):
    bundle = load_model(write_folder(tmp_path_factory.mktemp("model"), vocabulary=WORDS, softmax=True))
    english = TokenizerSpec(name="rules", language="en")
    return LanguageModel(bundle.model, bundle.softmax.read(), bundle.vocabulary, english)


def assert_same(found, expected):
    """But for the last bit, which other batches may change."""
    assert found.to_dict() == pytest.approx(expected.to_dict(), rel=1e-5)


def test_lines_are_sentences_and_blank_ones_are_passed_over(lm, tmp_path):
    path = tmp_path / "text.txt.gz"
    path.write_bytes(gzip.compress(b"the cat sat.\n\n  \nthe bank\n"))
    assert_same(perplexity_file(lm, path), lm.perplexity([["the", "cat", "sat", "."], ["the", "bank"]]))


def test_tokens_are_taken_as_they_are(lm, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("the cat. sat\n")
    assert_same(perplexity_file(lm, path, tokens=True), lm.perplexity([["the", "cat.", "sat"]]))


@pytest.mark.parametrize("split", [True, "de"])
def test_running_text_is_split(lm, tmp_path, split):
    path = tmp_path / "text.txt"
    path.write_text("The cat sat. The bank\nis closed.\n")
    expected = lm.perplexity([["The", "cat", "sat", "."], ["The", "bank", "is", "closed", "."]])
    assert_same(perplexity_file(lm, path, split=split), expected)


def test_each_sentence_has_its_line(lm, tmp_path):
    path, target = tmp_path / "text.txt", tmp_path / "scores.tsv"
    path.write_text("the cat sat\n\nthe\tzebra\n")
    perplexity_file(lm, path, sentences=target)
    names, *rows = [line.split("\t") for line in target.read_text().splitlines()]
    assert names == ["sentence", "words", "forward", "backward", "perplexity", "tokens"]
    for row, (number, tokens) in zip(rows, [("1", "the cat sat"), ("3", "the zebra")], strict=True):
        score = lm.score(tokens.split())
        assert (row[0], row[1], row[5]) == (number, str(len(score.tokens)), tokens)
        expected = (score.forward_total, score.backward_total, score.perplexity)
        assert list(map(float, row[2:5])) == pytest.approx(expected, abs=1e-3)


def test_what_is_refused(lm, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("\n\n")
    with pytest.raises(DataError, match=r"^the text has no words"):
        perplexity_file(lm, path)
    with pytest.raises(
        ConfigError, match=r"^split is for running text, tokens for text that is split already"
    ):
        perplexity_file(lm, path, tokens=True, split=True)
    with pytest.raises(DataError, match=r"cannot write .*missing/scores.tsv: No such file or directory"):
        perplexity_file(lm, path, sentences=tmp_path / "missing" / "scores.tsv")
    with pytest.raises(DataError, match="does not exist"):
        perplexity_file(lm, tmp_path / "missing.txt", sentences=tmp_path / "scores.tsv")
    assert not (tmp_path / "scores.tsv").exists()
