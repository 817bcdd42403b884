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
    asked, nearest = nearest_uses(embedder, text, "BANK", layer=layer)
    assert (asked.line, asked.text[asked.start : asked.end]) == (2, "bank")
    # Line 6 repeats the query's sentence.
    assert sorted((use.line, use.text[use.start : use.end]) for use in nearest) == [
        (4, "bank"),
        (4, "bank"),
        (5, "Bank"),
    ]
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
    assert len(nearest) == sum(len(line.split()) for line in LINES if line != LINES[1])


def test_word_that_is_not_there(text, embedder):
    with pytest.raises(DataError, match=r"text\.txt has no token 'play', expected at least one$"):
        nearest_uses(embedder, text, "play")
    with pytest.raises(DataError, match=r"the query 'a cat' has no token 'bank'"):
        nearest_uses(embedder, text, "bank", query="a cat")


def test_word_that_is_two_tokens(text, embedder):
    with pytest.raises(DataError, match=r"reads it as the tokens \['the', 'river'\], ask for one of them"):
        nearest_uses(embedder, text, "the river")


def test_layer_that_is_not_there(text, embedder):
    with pytest.raises(ConfigError, match="there is no layer 3; the model has 0 to 2"):
        nearest_uses(embedder, text, "bank", layer=3)


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
