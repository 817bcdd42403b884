"""Padded batches around a network without padding."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from elmokit.model import encode_distinct_rows, first_positions, num_characters, pad_layers, with_boundaries


def test_boundaries_by_hand():
    vectors = torch.tensor([[-1.0], [-2.0], [1.0], [2.0], [3.0]])  # <S>, </S>, then the tokens
    packed, is_token = with_boundaries(vectors, torch.tensor([2, 0, 1]))
    assert packed[:, 0].tolist() == [-1, 1, 2, -2, -1, -2, -1, 3, -2]
    assert is_token.tolist() == [value > 0 for value in packed[:, 0].tolist()]


@given(st.lists(st.integers(0, 4), max_size=5))
def test_boundaries_come_off_again(lengths):
    vectors = torch.arange(2 + sum(lengths), dtype=torch.float32)[:, None] - 2
    packed, is_token = with_boundaries(vectors, torch.tensor(lengths, dtype=torch.long))
    assert torch.equal(packed[is_token], vectors[2:])
    assert len(packed) == sum(lengths) + 2 * len(lengths)


def test_each_distinct_token_is_encoded_once():
    seen = []

    def encode(types):
        seen.append(len(types))
        return types.float() * 2

    ids = torch.tensor([[3, 1], [2, 2], [3, 1], [3, 1]])
    assert torch.equal(encode_distinct_rows(ids, encode), ids.float() * 2)
    assert seen == [2]


def test_characters_are_counted_up_to_the_last_that_is_no_padding():
    assert num_characters(torch.tensor([[5, 9, 9], [5, 9, 5], [9, 9, 9]]), padding=9).tolist() == [1, 3, 0]


def test_layers_at_their_places():
    mask = first_positions(torch.tensor([1, 0, 2]), 2)
    padded = pad_layers(torch.tensor([[[1.0], [2.0], [3.0]]]), mask)
    assert padded[0, :, :, 0].tolist() == [[1, 0], [0, 0], [2, 3]]
