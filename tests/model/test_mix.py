"""The mixes on numbers worked by hand."""

import math

import pytest
import torch

from elmokit.errors import ConfigError
from elmokit.model import ScalarMix

H1, H2 = [0.2, 0.4, 0.1, 0.3], [0.6, 0.1, 0.5, 0.2]
TWO = torch.tensor([H1, H2])
THREE = torch.tensor([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]])


def close(found, expected, atol=1e-6):
    torch.testing.assert_close(found.detach(), torch.tensor(expected), atol=atol, rtol=0)


def test_fixed():
    close(ScalarMix(2, kind="fixed", weights=[0.3, 0.7])(TWO), [0.48, 0.19, 0.38, 0.23])


def test_softmax():
    """softmax(log 0.3, log 0.7) = (0.3, 0.7), and γ doubles."""
    mix = ScalarMix(2, weights=[math.log(0.3), math.log(0.7)], gamma=2.0)
    close(mix(TWO), [0.96, 0.38, 0.76, 0.46])
    close(mix.coefficients(), [0.6, 1.4])


def test_softmax_starts_as_the_average():
    close(ScalarMix(3)(THREE), [37.0, 74.0], atol=1e-4)
    close(ScalarMix.average(3)(THREE), [37.0, 74.0], atol=1e-4)


def test_top():
    close(ScalarMix.top(3)(THREE), [100.0, 200.0])


def test_residual():
    """E(x) + Σ_{j≥1} s_j·h_j: the token layer is never weighed."""
    close(ScalarMix(3, kind="residual", weights=[0.5, 0.1])(THREE), [1 + 5 + 10.0, 2 + 10 + 20.0])
    close(ScalarMix(3, kind="residual")(THREE), [111.0, 222.0])


# Two tokens between boundaries, of two numbers each. Tokens alone: mean 4, variance (9 + 1 + 1 + 9) / 4 = 5.
# With the boundaries: mean (0 + 0 + 16 + 0 + 8) / 8 = 3, variance (3·9 + 4 + 0 + 4 + 16 + 25) / 8 = 9.5.
SENTENCE = torch.tensor([[[0.0, 0.0], [1.0, 3.0], [5.0, 7.0], [0.0, 8.0]]])


def test_layer_norm_of_bilm_tf_leaves_the_boundaries_out():
    mix = ScalarMix.average(1)
    mix.layer_norm = "bilm-tf"
    assert not mix.counts_boundaries
    inner = mix(SENTENCE, torch.tensor([False, True, True, False]))[1:3]
    close(inner, [[-3 / 5**0.5, -1 / 5**0.5], [1 / 5**0.5, 3 / 5**0.5]])


def test_layer_norm_of_allennlp_counts_them():
    mix = ScalarMix(1, kind="fixed", weights=[1.0], layer_norm="allennlp")
    assert mix.counts_boundaries
    deviation = ((9 + 9 + 4 + 0 + 4 + 16 + 9 + 25) / 8) ** 0.5
    inner = mix(SENTENCE)[1:3]
    close(inner, [[-2 / deviation, 0.0], [2 / deviation, 4 / deviation]])


def test_layer_norm_is_one_for_each_layer():
    layers = torch.stack([SENTENCE[0], 100 * SENTENCE[0] + 7])
    mix = ScalarMix(2, kind="fixed", weights=[1.0, -1.0], layer_norm="allennlp")
    close(mix(layers), [[0.0, 0.0]] * 4, atol=1e-5)


def test_layer_norm_of_equal_numbers_is_zero_and_not_nan():
    mix = ScalarMix(1, kind="fixed", weights=[1.0], layer_norm="bilm-tf")
    close(mix(torch.full((1, 3, 2), 5.0)), [[0.0, 0.0]] * 3)


def test_regulariser():
    """λ·Σ(w - 1/3)² of (1/3 + 0.1, 1/3 - 0.2, 1/3) is λ·0.05; the average costs nothing."""
    mix = ScalarMix(3, weights=[1 / 3 + 0.1, 1 / 3 - 0.2, 1 / 3])
    close(mix.regulariser(10.0), 0.5)
    close(ScalarMix(3, weights=[1 / 3] * 3).regulariser(10.0), 0.0)


def test_dropout_only_in_training():
    mix = ScalarMix(2, dropout=0.5)
    layers = torch.ones(2, 1000)
    close(mix.eval()(layers), [1.0] * 1000)
    torch.manual_seed(0)
    dropped = mix.train()(layers)
    assert set(dropped.unique().tolist()) == {0.0, 2.0}
    assert 400 < int((dropped == 0).sum()) < 600


@pytest.mark.parametrize("kind", ["softmax", "residual"])
def test_gradients_flow_into_what_is_learnt(kind):
    mix = ScalarMix(3, kind=kind)
    mix(THREE).square().sum().backward()
    assert all(
        parameter.grad is not None and parameter.grad.abs().sum() > 0 for parameter in mix.parameters()
    )


def test_fixed_weights_stay():
    assert not any(parameter.requires_grad for parameter in ScalarMix.average(3).parameters())


def test_any_number_of_axes_between():
    layers = torch.randn(3, 2, 5, 4, generator=torch.Generator().manual_seed(0))
    assert ScalarMix(3)(layers).shape == (2, 5, 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "fixed"}, "a fixed mix needs its 3 weights"),
        ({"weights": [1.0]}, "a softmax mix of 3 layers has 3 weights, found 1"),
        ({"kind": "residual", "weights": [1.0] * 3}, "a residual mix of 3 layers has 2 weights, found 3"),
        ({"layer_norm": "keras"}, "layer_norm must be one of bilm-tf, allennlp, found 'keras'"),
        ({"kind": "sum"}, "kind must be one of softmax, fixed, residual, found 'sum'"),
        ({"dropout": 1.5}, "dropout must be a finite number from 0 to 1, found 1.5"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(ConfigError, match=f"^{message}"):
        ScalarMix(3, **arguments)
