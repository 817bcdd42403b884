"""The LSTM of the CPU computes what torch's own does."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils.rnn import PackedSequence

from elmokit.kernels.lstm_training import bidirectional_lstm
from elmokit.kernels.precision import supported
from elmokit.model import Packing


def by_torch(lstm, x, packing):
    packed = PackedSequence(x[packing.index[0]], torch.tensor(packing.step_sizes))
    return lstm(packed)[0].data[packing.inverse[0]]


@given(st.lists(st.integers(1, 7), min_size=1, max_size=6), st.integers(1, 2))
@settings(max_examples=30, deadline=None)
def test_values_and_gradients_are_those_of_torch(lengths, layers):
    torch.manual_seed(0)
    lstm = nn.LSTM(5, 4, layers, bidirectional=True).double()
    packing = Packing.of(torch.tensor(lengths))
    upstream = torch.randn(sum(lengths), 8, dtype=torch.double)
    inputs = torch.randn(sum(lengths), 5, dtype=torch.double)
    found = []
    for run in (bidirectional_lstm, by_torch):
        x = inputs.clone().requires_grad_()
        lstm.zero_grad()
        out = run(lstm, x, packing)
        out.backward(upstream)
        found.append([out, x.grad, *(weight.grad for weight in lstm.parameters())])
    torch.testing.assert_close(*found)


def test_dropout_between_layers_in_training_alone():
    lstm = nn.LSTM(5, 4, 2, bidirectional=True, dropout=1.0)
    packing = Packing.of(torch.tensor([3]))
    x, y = torch.randn(2, 3, 5)
    assert torch.equal(bidirectional_lstm(lstm, x, packing), bidirectional_lstm(lstm, y, packing))
    lstm.eval()
    assert not torch.equal(bidirectional_lstm(lstm, x, packing), bidirectional_lstm(lstm, y, packing))


def test_a_second_backward_is_refused():
    lstm = nn.LSTM(2, 2, bidirectional=True)
    out = bidirectional_lstm(lstm, torch.randn(3, 2), Packing.of(torch.tensor([3]))).sum()
    out.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="a second time"):
        out.backward()


@pytest.mark.skipif("bfloat16" not in supported(), reason="no native bfloat16 on this machine")
def test_in_training_products_are_of_bfloat16_and_near_those_of_float32():
    torch.manual_seed(0)
    lstm = nn.LSTM(50, 40, bidirectional=True)
    packing = Packing.of(torch.tensor([9, 5, 1]))
    x = torch.randn(15, 50)
    expected = by_torch(lstm, x, packing)
    low = bidirectional_lstm(lstm, x, packing)
    assert not torch.allclose(low, expected, atol=1e-6)
    torch.testing.assert_close(low, expected, atol=1e-2, rtol=1e-2)
    lstm.eval()
    torch.testing.assert_close(bidirectional_lstm(lstm, x, packing), expected)


def test_dropout_between_layers_is_drawn_from_the_generator():
    torch.manual_seed(0)
    lstm = nn.LSTM(5, 4, 2, bidirectional=True, dropout=0.5)
    packing, x, before = Packing.of(torch.tensor([3, 2])), torch.randn(5, 5), torch.get_rng_state()
    first, same, other = (
        bidirectional_lstm(lstm, x, packing, generator=torch.Generator().manual_seed(seed))
        for seed in (1, 1, 2)
    )
    assert torch.equal(first, same)
    assert not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("precision", supported()[1:])
def test_low_precision_is_near(precision):
    torch.manual_seed(0)
    lstm = nn.LSTM(5, 4, 2, bidirectional=True).eval()
    packing, x = Packing.of(torch.tensor([3, 2])), torch.randn(5, 5)
    exact, rough = (bidirectional_lstm(lstm, x, packing, precision=p) for p in ("float32", precision))
    torch.testing.assert_close(rough, exact, atol=0.03, rtol=0)
    assert bidirectional_lstm(lstm, x[:0], Packing.of(torch.tensor([0]))).shape == (0, 8)
