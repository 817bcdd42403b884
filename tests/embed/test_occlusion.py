"""Vectors explained by leaving out words."""

import numpy as np
import pytest

import elmokit
from tests.tiny import WORDS, write_folder

TEXT = "the bank raised the rate"


@pytest.fixture(scope="module")
def elmo(tmp_path_factory):
    return elmokit.load(write_folder(tmp_path_factory.mktemp("occlusion") / "tiny", vocabulary=WORDS))


def cosine(one, other):
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def test_the_vector_of_a_text(elmo):
    found = elmokit.explain_vector(elmo, TEXT)
    words = TEXT.split()
    assert [word.text for word in found.words] == words
    for place, word in enumerate(found.words):
        left = [words[:place] + words[place + 1 :]]
        assert word.influence == pytest.approx(1 - cosine(elmo.encode(TEXT), elmo.encode(left)[0]), abs=1e-5)
        assert TEXT[word.start : word.end] == word.text
    assert found.pooling == "mean"
    assert found.layers == pytest.approx([1 / elmo.num_layers] * elmo.num_layers)
    assert "how far it turns" in str(found)
    assert "<section>" in found.html()


def test_the_vector_of_a_word(elmo):
    found = elmokit.explain_vector(elmo, TEXT, at="bank")
    assert [word.text for word in found.words if word.influence is None] == ["bank"]
    whole = elmo.embed(TEXT)["bank"]
    for place in (0, 3):
        words = TEXT.split()
        del words[place]
        left = elmo.embed([words])[0].vectors[words.index("bank")]
        assert found.words[place].influence == pytest.approx(1 - cosine(whole, left), abs=1e-5)
    assert elmokit.explain_vector(elmo, TEXT, at=1) == found
    together = elmokit.explain_vector(elmo, TEXT, at="bank raised")
    assert (together.of, together.words[1].influence) == ("bank raised", None)


def test_a_similarity(elmo):
    found = elmokit.explain_vector(elmo, TEXT, other="the bank", pooling="max")
    assert found.similarity == pytest.approx(
        cosine(elmo.encode(TEXT, pooling="max"), elmo.encode("the bank", pooling="max")), abs=1e-5
    )
    left = elmo.encode([TEXT.split()[1:]], pooling="max")[0]
    expected = found.similarity - cosine(left, elmo.encode("the bank", pooling="max"))
    assert found.words[0].influence == pytest.approx(expected, abs=1e-5)
    assert "what each word adds to it" in str(found)


@pytest.mark.parametrize(
    ("text", "asked", "error", "message"),
    [
        (TEXT, {"at": "the"}, elmokit.ConfigError, "at the positions 0, 3; take one of them, such as at=0"),
        (TEXT, {"at": "money"}, elmokit.ConfigError, "is not among the words the bank raised the rate"),
        (TEXT, {"at": 5}, elmokit.ConfigError, "expected one from 0 to 4"),
        (TEXT, {"at": 1, "other": "x"}, elmokit.ConfigError, "other and pooling are for"),
        (TEXT, {"pooling": "sif"}, elmokit.ConfigError, "needs statistics"),
        ("bank", {}, elmokit.DataError, "at least two words, found 'bank'"),
        ("", {}, elmokit.DataError, "at least two words"),
    ],
)
def test_what_cannot_be_explained(elmo, text, asked, error, message):
    with pytest.raises(error, match=message):
        elmokit.explain_vector(elmo, text, **asked)


def test_words_of_several_characters():
    elmo = elmokit.load("zh", words="jieba")
    found = elmokit.explain_vector(elmo, "银行提高了利率", at="银行")
    assert [word.text for word in found.words] == elmo.embed("银行提高了利率").tokens
    assert found.words[0].influence is None
    assert all(word.influence > 0 for word in found.words[1:])
