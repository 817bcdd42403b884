"""Dropout: the share of zeros, what is left, and when nothing happens."""

import pytest
import torch

from elmokit.kernels.dropout import Dropout, dropout


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.5])
def test_the_share_of_zeros_is_the_rate_at_each_of_the_four_places_of_a_draw(rate):
    torch.manual_seed(1)
    zeros = dropout(torch.ones(100_000, 4), rate, training=True) == 0
    torch.testing.assert_close(zeros.float().mean(0), torch.full((4,), rate), atol=0.006, rtol=0)


def test_what_is_left_is_divided_by_its_share():
    left = dropout(torch.full((33, 3), 3.0), 0.25, training=True)
    assert set(left.unique().tolist()) == {0.0, 4.0}


def test_gradients_pass_where_numbers_do():
    x = torch.randn(7, 5, requires_grad=True)
    dropped = dropout(x, 0.5, training=True)
    dropped.sum().backward()
    assert torch.equal(x.grad, torch.where(dropped == 0, 0.0, 2.0))


def test_the_seed_decides():
    x = torch.ones(1000)
    torch.manual_seed(1)
    first, other = dropout(x, 0.5, training=True), dropout(x, 0.5, training=True)
    torch.manual_seed(1)
    assert torch.equal(dropout(x, 0.5, training=True), first)
    assert not torch.equal(first, other)


def test_nothing_is_dropped_in_use_and_all_by_a_rate_of_one():
    x = torch.randn(4, 3)
    assert torch.equal(Dropout(0.5).eval()(x), x)
    assert torch.equal(dropout(x, 0.0, training=True), x)
    assert not dropout(x, 1.0, training=True).any()
    assert dropout(torch.empty(0, 3), 0.5, training=True).shape == (0, 3)


def test_a_generator_of_its_own_decides_the_masks_and_leaves_the_global_one_alone():
    x, before = torch.ones(1000), torch.get_rng_state()
    layer = Dropout(0.5, generator=torch.Generator().manual_seed(3))
    first, other = layer(x), layer(x)
    assert torch.equal(dropout(x, 0.5, training=True, generator=torch.Generator().manual_seed(3)), first)
    assert not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), before)
