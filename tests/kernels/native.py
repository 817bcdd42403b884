"""What the tests of the native kernel share: engines, and an LSTM in float64."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st

from elmokit.kernels import LayerWeights, Packing, Precision
from elmokit.kernels.native import engines, library

# `make sanitize` tests another library, which is slower, with more cases.
if "ELMOKIT_NATIVE_LIBRARY" in os.environ:
    library.LIBRARY = Path(os.environ["ELMOKIT_NATIVE_LIBRARY"]).resolve()
    assert library.native_library() is not None

cases = settings(max_examples=int(os.environ.get("ELMOKIT_CASES", "40")), deadline=None)
ENGINES = [engine for precision in get_args(Precision) for engine in engines(precision)]


def parametrize(*precisions):
    """Run a test with every engine of these precisions (all when none is given)."""
    chosen = [engine for engine in ENGINES if not precisions or engine.precision in precisions]
    return pytest.mark.parametrize("engine", chosen, ids=lambda engine: f"{engine.name}-{engine.precision}")


def make_shape(cells, *, skip=True, clip=3.0, cell_clip=3.0):
    return SimpleNamespace(
        cell_dim=cells, forget_bias=1.0, cell_clip=cell_clip, projection_clip=clip, skip_connections=skip
    )


def make_layers(cells, dim, *, layers=2, projected=True, seed=0):
    random = torch.Generator().manual_seed(seed)

    def draw(*size):
        return torch.randn(*size, generator=random) * size[-1] ** -0.5

    return [
        [
            LayerWeights(
                draw(4 * cells, dim),
                draw(4 * cells, dim),
                draw(4 * cells) * 0.3,
                draw(dim, cells) if projected else None,
            )
            for _ in range(2)
        ]
        for _ in range(layers)
    ]


def run(lstm, x, lengths, start=None, layers=2):
    """Outputs (L, S, 2, P), and the states at the end in the order of the sentences."""
    packing = Packing.of(torch.tensor(lengths, dtype=torch.long))
    rank = torch.argsort(packing.order)
    if start is not None:
        start = tuple(state[:, :, packing.order] for state in start)
    out = torch.full((layers, len(x), 2, x.shape[1]), 7.0)
    hidden, cell = lstm(x, slice(0, 2), packing, start, out)
    return out, hidden[:, :, rank], cell[:, :, rank]


def reference(layers, shape, x, lengths, start=None):
    """The same in float64, sentence by sentence."""
    dim, cells = x.shape[1], shape.cell_dim
    out = torch.zeros(len(layers), len(x), 2, dim, dtype=torch.float64)
    hidden = torch.zeros(len(layers), 2, len(lengths), dim, dtype=torch.float64)
    cell = torch.zeros(len(layers), 2, len(lengths), cells, dtype=torch.float64)
    if start is not None:
        hidden, cell = start[0].double().clone(), start[1].double().clone()
    begin = 0
    for row, length in enumerate(lengths):
        for direction in range(2):
            places = torch.arange(begin, begin + length)
            inputs = x[places].double()
            for number, layer in enumerate(layers):
                outputs = torch.empty(length, dim, dtype=torch.float64)
                own = (number, direction, row)
                for t in range(length)[:: 1 - 2 * direction]:
                    hidden[own], cell[own] = _step(layer[direction], shape, inputs[t], hidden[own], cell[own])
                    outputs[t] = hidden[own]
                inputs = outputs + inputs if shape.skip_connections and number > 0 else outputs
                out[number, places, direction] = inputs
        begin += length
    return out, hidden, cell


def _step(weights, shape, x, hidden, cell):
    z = weights.input_weight.double() @ x + weights.state_weight.double() @ hidden + weights.bias.double()
    i, f, j, o = z.chunk(4)
    cell = torch.sigmoid(f + shape.forget_bias) * cell + torch.sigmoid(i) * torch.tanh(j)
    if shape.cell_clip is not None:
        cell = cell.clamp(-shape.cell_clip, shape.cell_clip)
    hidden = torch.sigmoid(o) * torch.tanh(cell)
    if weights.projection is not None:
        hidden = weights.projection.double() @ hidden
        if shape.projection_clip is not None:
            hidden = hidden.clamp(-shape.projection_clip, shape.projection_clip)
    return hidden, cell


lengths = st.lists(st.integers(1, 9), min_size=1, max_size=20)
clips = st.sampled_from([None, 0.1, 1.0, 3.0])
seeds = st.integers(0, 10**6)
