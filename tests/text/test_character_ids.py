import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.errors import ConfigError
from elmokit.text.character_ids import (
    BEGIN_SENTENCE,
    BEGIN_WORD,
    END_SENTENCE,
    END_WORD,
    NUM_CHARACTERS,
    PAD,
    PREDICTION_SHIFT,
    character_matrix,
    is_truncated,
    used_characters,
)


def reference_ids(token: str, max_characters: int) -> list[int]:
    """The rule of the original systems, written out."""
    if token in ("<S>", "</S>"):
        spelt = [BEGIN_SENTENCE if token == "<S>" else END_SENTENCE]
    else:
        spelt = list(token.encode("utf-8", "ignore")[: max_characters - 2])
    row = [BEGIN_WORD, *spelt, END_WORD]
    return row + [PAD] * (max_characters - len(row))


def test_named_ids_are_those_of_the_published_models():
    assert [BEGIN_SENTENCE, END_SENTENCE, BEGIN_WORD, END_WORD, PAD] == [256, 257, 258, 259, 260]
    assert NUM_CHARACTERS == 261
    # The published tools print 259 for "begin of word": training id plus one.
    assert BEGIN_WORD + PREDICTION_SHIFT == 259


@pytest.mark.parametrize(
    ("token", "start"),
    [
        ("Hi", [258, 72, 105, 259, 260]),
        ("é", [258, 195, 169, 259, 260]),
        ("<S>", [258, 256, 259, 260]),
        ("</S>", [258, 257, 259, 260]),
        ("<s>", [258, 60, 115, 62, 259, 260]),  # exact and case-sensitive
        ("<UNK>", [258, 60, 85, 78, 75, 62, 259, 260]),  # spelt, not special
        ("", [258, 259, 260]),
        ("\ud800", [258, 259, 260]),  # a lone surrogate has no bytes
    ],
)
def test_rows_by_hand(token, start):
    row = character_matrix([token])[0].tolist()
    assert row[: len(start)] == start
    assert row[len(start) :] == [PAD] * (50 - len(start))


def test_a_token_may_be_truncated_inside_a_character():
    row = character_matrix(["a" * 47 + "é"])[0].tolist()
    assert row[47:] == [97, 195, 259]
    assert is_truncated("a" * 47 + "é")
    assert not is_truncated("a" * 46 + "é")


def test_truncated_tokens():
    assert [is_truncated(token) for token in ("a" * 48, "a" * 49, "中" * 16, "中" * 17)] == [False, True] * 2
    assert is_truncated("abcd", max_characters=5)


@given(st.lists(st.text(max_size=60) | st.sampled_from(["<S>", "</S>", "\ud800"])), st.integers(3, 60))
def test_matrix_is_the_rule_row_by_row(tokens, max_characters):
    matrix = character_matrix(tokens, max_characters=max_characters)
    assert matrix.shape == (len(tokens), max_characters)
    assert matrix.dtype == np.int32
    assert matrix.tolist() == [reference_ids(token, max_characters) for token in tokens]
    assert used_characters(matrix).tolist() == [max_characters - row.count(PAD) for row in matrix.tolist()]


def test_a_bare_string_is_refused():
    with pytest.raises(ConfigError, match=r"bare string 'bank'.*pass a list"):
        character_matrix("bank")


def test_a_row_without_room_is_refused():
    with pytest.raises(ConfigError, match="max_characters is 2, expected at least 3"):
        character_matrix(["a"], max_characters=2)
