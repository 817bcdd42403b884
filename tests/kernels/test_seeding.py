"""The global generator, seeded for a while."""

import pytest
import torch

from elmokit.kernels import seeded


def draw(*seeds):
    with seeded(*seeds):
        return torch.rand(8)


def test_the_same_numbers_give_the_same_draws_and_others_give_others():
    assert torch.equal(draw(5, 1), draw(5, 1))
    drawn = {tuple(draw(*seeds).tolist()) for seeds in ((5,), (5, 0), (5, 1), (1, 5), (5, 1, 0), (6, 1))}
    assert len(drawn) == 6


def test_one_number_is_torchs_own_seed():
    assert torch.equal(draw(5), torch.rand(8, generator=torch.Generator().manual_seed(5)))


def test_the_global_generator_goes_on_as_if_nothing_had_happened():
    before = torch.get_rng_state()
    draw(3)
    with pytest.raises(KeyError), seeded(4):
        raise KeyError
    assert torch.equal(torch.get_rng_state(), before)
