"""All layers over a packed batch, in one direction or in both, beside the model's own layers."""

import pytest
import torch

from elmokit.kernels import Packing
from elmokit.kernels.lstm_inference import InferenceLSTM
from elmokit.kernels.native import NativeLSTM, engines
from tests.tiny import tiny_config, tiny_model

LENGTHS = torch.tensor([4, 0, 2, 7])

each_engine = pytest.mark.parametrize("engine", [None, *engines("float32")[-1:]])


def make(engine, **changes):
    model = tiny_model(tiny_config(num_layers=3, **changes))
    weights = [[layer.weights(direction) for direction in range(2)] for layer in model.lstm_layers]
    if engine is None:
        return model, InferenceLSTM(weights, model.config, "float32")
    return model, NativeLSTM(weights, model.config, engine)


@each_engine
@pytest.mark.parametrize("changes", [{}, {"skip_connections": False, "cell_dim": 3, "projection": False}])
@pytest.mark.parametrize("direction", [0, 1])
@torch.inference_mode()
def test_one_direction_is_half_of_the_model(engine, changes, direction):
    model, lstm = make(engine, **changes)
    random = torch.Generator().manual_seed(2)
    x = torch.randn(int(LENGTHS.sum()), 3, generator=random)
    _, state = model(x, LENGTHS)
    layers, ends = model(x, LENGTHS, state)
    packing, own = Packing.of(LENGTHS), slice(direction, direction + 1)
    start = [
        torch.stack([getattr(s.rows(packing.order), name) for s in state]) for name in ("hidden", "cell")
    ]
    out = torch.empty(3, len(x), 2, 3)  # (L, S, 2, P)
    hidden, cell = lstm(x, own, packing, (start[0][:, own], start[1][:, own]), out)
    half = layers[1:].unflatten(-1, (2, 3))[:, :, direction]  # (L, S, P)
    torch.testing.assert_close(out[:, :, direction], half, atol=1e-6, rtol=0)
    for number, end in enumerate(ends):
        for found, name in ((hidden, "hidden"), (cell, "cell")):
            expected = getattr(end.rows(packing.order), name)[direction]
            torch.testing.assert_close(found[number, 0], expected, atol=1e-6, rtol=0)


@each_engine
@torch.inference_mode()
def test_both_directions_at_once_are_each_alone(engine):
    _, lstm = make(engine)
    packing = Packing.of(LENGTHS)
    x = torch.randn(int(LENGTHS.sum()), 3, generator=torch.Generator().manual_seed(3))
    out, apart = torch.empty(3, len(x), 2, 3), torch.empty(3, len(x), 2, 3)
    both = lstm(x, slice(0, 2), packing, None, out)
    for direction in range(2):
        own = slice(direction, direction + 1)
        for a, b in zip(both, lstm(x, own, packing, None, apart), strict=True):
            torch.testing.assert_close(a[:, own], b, atol=1e-6, rtol=0)
    torch.testing.assert_close(out, apart, atol=1e-6, rtol=0)
