"""Sampling of tokens from log-probabilities."""

import collections
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmokit import ConfigError
from elmokit.decoding import nucleus, sample

WEIGHTS = st.lists(st.floats(0.001, 1), min_size=1, max_size=8)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def shares(probabilities, **settings):
    generator = seeded()
    logs = torch.tensor(probabilities).log()
    counts = collections.Counter(sample(logs, generator=generator, **settings) for _ in range(2000))
    return [counts[row] / 2000 for row in range(len(probabilities))]


@pytest.mark.parametrize(
    ("temperature", "top_p", "expected"),
    [
        (1.0, 1.0, [0.125, 0.5, 0.25, 0.125]),
        (0.5, 1.0, [1 / 22, 16 / 22, 4 / 22, 1 / 22]),
        (1.0, 0.5, [0, 1, 0, 0]),
        (1.0, 0.51, [0, 2 / 3, 1 / 3, 0]),
        (1.0, 0.75, [0, 2 / 3, 1 / 3, 0]),
        (1.0, 1e-9, [0, 1, 0, 0]),
        (0.0, 1.0, [0, 1, 0, 0]),
        (1e6, 1.0, [0.25] * 4),
    ],
)
def test_temperature_and_nucleus(temperature, top_p, expected):
    found = shares([0.125, 0.5, 0.25, 0.125], temperature=temperature, top_p=top_p)
    assert found == pytest.approx(expected, abs=0.04)
    assert [share == 0 for share in found] == [share == 0 for share in expected]


def test_a_seed_gives_the_same_draws_and_leaves_the_global_state_alone():
    logs = torch.tensor([0.25] * 4).log()
    before = torch.get_rng_state()
    draws = [[sample(logs, generator=generator) for _ in range(30)] for generator in (seeded(), seeded())]
    assert draws[0] == draws[1] != [draws[0][0]] * 30
    assert torch.equal(torch.get_rng_state(), before)


def test_an_id_of_probability_nought_is_never_drawn():
    assert shares([0.5, 0.0, 0.5], temperature=100.0)[1] == 0


@given(WEIGHTS, st.floats(0.01, 1))
def test_the_nucleus_is_the_smallest_set(weights, top_p):
    probabilities = torch.tensor(weights, dtype=torch.float64)
    probabilities /= probabilities.sum()
    likely, ids = nucleus(probabilities, top_p)
    assert torch.equal(probabilities[ids], likely)
    assert len(set(ids.tolist())) == len(ids)
    assert (likely.diff() <= 0).all()
    assert likely.sum() >= top_p - 1e-9
    assert likely[:-1].sum() < top_p
    others = [p for row, p in enumerate(probabilities.tolist()) if row not in ids.tolist()]
    assert max(others, default=0.0) <= likely[-1]


@given(WEIGHTS, st.floats(0.1, 10), st.floats(0.01, 1), st.integers(0, 9))
def test_each_draw_lies_in_the_nucleus_of_the_tempered_distribution(weights, temperature, top_p, seed):
    tempered = torch.tensor(weights, dtype=torch.float64) ** (1 / temperature)
    least = nucleus(tempered / tempered.sum(), top_p)[0][-1]
    logs = torch.tensor(weights, dtype=torch.float64).log()
    drawn = sample(logs, generator=seeded(seed), temperature=temperature, top_p=top_p)
    assert tempered[drawn] / tempered.sum() >= least - 1e-9


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": -1.0}, "temperature must be a finite number of at least 0, found -1.0"),
        ({"temperature": math.nan}, "temperature must be a finite number of at least 0, found nan"),
        ({"top_p": 0.0}, "top_p must be a finite number above 0 and at most 1, found 0.0"),
        ({"top_p": 1.1}, "top_p must be a finite number above 0 and at most 1, found 1.1"),
    ],
)
def test_numbers_out_of_range(settings, message):
    with pytest.raises(ConfigError, match=f"^{message}"):
        sample(torch.zeros(2), generator=seeded(), **settings)
