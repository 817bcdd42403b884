import numpy as np
import pytest

from elmokit.embed.embedder import Embedder
from elmokit.errors import ConfigError, DataError
from elmokit.search import nearest_uses
from tests.tiny import tiny_bundle

LINES = [
    "the river is long",
    "The bank of the river",
    "",
    "a bank gave me money , and another bank took it",
    "Bank robbers like the night",
    "The bank of the river",
]


@pytest.fixture(scope="module")
def embedder():
    return Embedder(tiny_bundle(), batch_tokens=8)


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("\n".join(LINES) + "\n")
    return path


def cosine(one, other):
    return one @ other / np.linalg.norm(one) / np.linalg.norm(other)


@pytest.mark.parametrize("layer", [-1, 0, 1])
def test_uses_by_cosine(text, embedder, layer):
    asked, nearest = nearest_uses(embedder, text, "BANK", layers=layer)
    assert (asked.line, asked.text[asked.start : asked.end]) == (2, "bank")
    found = sorted((use.line, use.word) for use in nearest)
    assert found == [(4, "bank"), (4, "bank"), (5, "Bank"), (6, "bank")]
    (same,) = (use for use in nearest if use.line == 6)  # repeats the sentence
    assert same.cosine == pytest.approx(1, abs=1e-5)
    nearest.remove(same)
    query = embedder.embed(LINES[1]).layers[layer, 1]
    places = {(4, 2): (3, 1), (4, LINES[3].rindex("bank")): (3, 8), (5, 0): (4, 0)}
    for use in nearest:
        line, position = places[use.line, use.start]
        assert use.cosine == pytest.approx(
            cosine(query, embedder.embed(LINES[line]).layers[layer, position]), abs=1e-5
        )
    assert [use.cosine for use in nearest] == sorted((use.cosine for use in nearest), reverse=True)


def test_query_of_ones_own_and_k(text, embedder):
    asked, nearest = nearest_uses(embedder, text, "bank", query="my bank", k=2)
    assert (asked.line, asked.start, asked.end, asked.cosine) == (0, 3, 7, 1.0)
    assert len(nearest) == 2


def test_any_word(text, embedder):
    _, nearest = nearest_uses(embedder, text, "bank", k=100, any_word=True)
    assert len(nearest) == sum(len(line.split()) for line in LINES) - 1


def test_word_that_is_not_there(text, embedder):
    with pytest.raises(
        DataError, match=r"text\.txt has no word 'play', expected at least one; only whole words count$"
    ):
        nearest_uses(embedder, text, "play")
    with pytest.raises(DataError, match=r"the query 'a cat' has no word 'bank'"):
        nearest_uses(embedder, text, "bank", query="a cat")


def test_word_that_is_two_tokens(text, embedder):
    asked, (use,) = nearest_uses(embedder, text, "The River", query="the river is long", k=1)
    assert (asked.start, asked.end) == (0, 9)
    assert (use.line, use.word) == (1, "the river")
    query, other = (embedder.embed(line).layers[-1] for line in (LINES[0], LINES[1]))
    _, nearest = nearest_uses(embedder, text, "the river", query=LINES[0])
    expected = cosine(query[:2].mean(axis=0), other[3:5].mean(axis=0))
    assert nearest[1].cosine == pytest.approx(expected, abs=1e-5)


def test_case_can_matter(text, embedder):
    _, nearest = nearest_uses(embedder, text, "bank", query="bank", match_case=True)
    assert {use.word for use in nearest} == {"bank"}
    with pytest.raises(DataError, match="has no word 'BANK' in this case"):
        nearest_uses(embedder, text, "BANK", match_case=True)


def test_layer_that_is_not_there(text, embedder):
    with pytest.raises(ConfigError, match="there is no layer 3; the model has 0 to 2"):
        nearest_uses(embedder, text, "bank", layers=3)
    with pytest.raises(ConfigError, match="one layer is compared, found layers='all'"):
        nearest_uses(embedder, text, "bank", layers="all")


def test_standard_input_is_read_once_only(embedder):
    with pytest.raises(ConfigError, match=r"cannot be read twice; .*query=TEXT"):
        nearest_uses(embedder, "-", "bank")


def test_a_list_of_lines_tokens_and_running_text(embedder):
    for settings in ({}, {"tokens": True}):
        asked, (use,) = nearest_uses(embedder, ["my bank", "no", "a bank"], "bank", **settings)
        assert (asked.line, use.line, use.text) == (1, 3, "a bank")
    asked, (use,) = nearest_uses(embedder, ["My bank . A river . A bank"], "bank", split="en")
    assert (asked.text, use.line, use.text) == ("My bank .", 3, "A bank")
    asked, _ = nearest_uses(embedder, ["a bank"], "bank", query="my-own bank", tokens=True)
    assert (asked.start, asked.end) == (7, 11)


def test_running_text_needs_a_language(embedder):
    with pytest.raises(ConfigError, match="split='en'"):
        nearest_uses(embedder, ["My bank."], "bank", split=True)
