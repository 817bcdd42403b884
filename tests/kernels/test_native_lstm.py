"""The native LSTM: the numbers of float64, the same bits in any batch, nothing read or written outside."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmokit.errors import ConfigError
from elmokit.kernels import Packing
from elmokit.kernels.lstm_inference import InferenceLSTM
from elmokit.kernels.native import NativeLSTM
from tests.kernels.native import (
    cases,
    clips,
    lengths,
    make_layers,
    make_shape,
    parametrize,
    reference,
    run,
    seeds,
)

sizes = st.integers(1, 70)


def draw_x(rows, dim, seed, scale=1.0):
    return torch.randn(rows, dim, generator=torch.Generator().manual_seed(seed)) * scale


def draw_start(layers, batch, dim, cells, seed):
    random = torch.Generator().manual_seed(seed)
    hidden = torch.rand(layers, 2, batch, dim, generator=random) - 0.5
    return hidden.clamp(-0.1, 0.1), torch.rand(layers, 2, batch, cells, generator=random) - 0.5


@parametrize("float32")
@cases
@given(data=st.data())
def test_float32_has_the_numbers_of_float64(engine, data):
    cells, dim, projected = data.draw(sizes), data.draw(sizes), data.draw(st.booleans())
    dim = dim if projected else cells
    each, seed, number = data.draw(lengths), data.draw(seeds), data.draw(st.integers(1, 3))
    shape = make_shape(
        cells, skip=data.draw(st.booleans()), clip=data.draw(clips), cell_clip=data.draw(clips)
    )
    layers = make_layers(cells, dim, layers=number, projected=projected, seed=seed)
    x = draw_x(sum(each), dim, seed, data.draw(st.sampled_from([1.0, 1e-3, 30.0])))
    start = draw_start(number, len(each), dim, cells, seed) if data.draw(st.booleans()) else None
    found = run(NativeLSTM(layers, shape, engine), x, each, start, number)
    # The sums of large inputs have an error of their own size.
    tolerance = 2e-6 * max(1.0, float(x.abs().max()) / 4)
    for got, expected in zip(found, reference(layers, shape, x, each, start), strict=True):
        torch.testing.assert_close(got.double(), expected, rtol=0, atol=tolerance)


@parametrize("float32")
def test_float32_of_the_bundled_shape(engine):
    layers, shape, each = make_layers(768, 192), make_shape(768), [24, 3, 9, 2]
    x = draw_x(sum(each), 192, 1)
    out, _, _ = run(NativeLSTM(layers, shape, engine), x, each)
    assert (out.double() - reference(layers, shape, x, each)[0]).abs().max() < 2e-6


@parametrize("int8", "bfloat16")
@cases
@given(cells=st.integers(24, 70), dim=st.integers(16, 70), each=lengths, seed=seeds, clip=clips)
def test_lower_precision_is_near(engine, cells, dim, each, seed, clip):
    layers, shape = make_layers(cells, dim, seed=seed), make_shape(cells, clip=clip)
    x = draw_x(sum(each), dim, seed)
    out, hidden, cell = run(NativeLSTM(layers, shape, engine), x, each)
    expected = reference(layers, shape, x, each)
    for got, wanted in zip((out, hidden, cell), expected, strict=True):
        assert (got - wanted).norm() < 0.1 * wanted.norm() + 0.02


@parametrize("int8")
@pytest.mark.parametrize("clip", [3.0, None])
def test_int8_is_torchs_int8(engine, clip, monkeypatch):
    seven_bits = engine.name in ("avx2", "avx512")
    monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: not seven_bits)
    layers, shape, each = make_layers(96, 48), make_shape(96, clip=clip), [7, 3, 5, 1]
    x = draw_x(sum(each), 48, 3)
    out, _, _ = run(NativeLSTM(layers, shape, engine), x, each)
    expected, _, _ = run(InferenceLSTM(layers, shape, "int8"), x, each)
    # The integers are the same but where a number lies between two of them and rounding decides.
    assert (out - expected).abs().median() < 2e-5
    assert (out - expected).norm() < 0.006 * expected.norm()


@parametrize()
@cases
@given(cells=sizes, dim=sizes, each=lengths, seed=seeds, clip=clips)
def test_a_sentence_has_the_same_bits_in_any_batch(engine, cells, dim, each, seed, clip):
    lstm = NativeLSTM(make_layers(cells, dim, seed=seed), make_shape(cells, clip=clip), engine)
    x = draw_x(sum(each), dim, seed)
    together, hidden, cell = run(lstm, x, each)
    for row, part in enumerate(torch.split(torch.arange(len(x)), each)):
        alone, own_hidden, own_cell = run(lstm, x[part], [len(part)])
        assert torch.equal(alone, together[:, part])
        assert torch.equal(own_hidden[:, :, 0], hidden[:, :, row])
        assert torch.equal(own_cell[:, :, 0], cell[:, :, row])


@parametrize()
@pytest.mark.parametrize("projected", [True, False])
def test_a_state_continues_to_the_bit(engine, projected):
    layers, shape = make_layers(40, 40, layers=1, projected=projected), make_shape(40)
    lstm, x = NativeLSTM(layers, shape, engine), draw_x(12, 40, 5)
    whole, hidden, cell = run(lstm, x, [12], layers=1)
    first, *state = run(lstm, x[:7], [7], layers=1)
    second, end_hidden, end_cell = run(lstm, x[7:], [5], state, layers=1)
    assert torch.equal(torch.cat([first, second], 1)[:, :, 0], whole[:, :, 0])
    assert torch.equal(end_hidden[:, 0], hidden[:, 0])
    assert torch.equal(end_cell[:, 0], cell[:, 0])


@parametrize()
def test_what_is_not_a_number_stays_in_its_sentence(engine):
    lstm, each = NativeLSTM(make_layers(24, 20), make_shape(24), engine), [3, 4, 2]
    x = draw_x(9, 20, 6)
    clean, _, _ = run(lstm, x, each)
    for bad in (float("nan"), float("inf")):
        spoilt = x.clone()
        spoilt[4, 7] = bad  # the second token of the second sentence
        out, hidden, cell = run(lstm, spoilt, each)
        assert torch.equal(out[:, [0, 1, 2, 7, 8]], clean[:, [0, 1, 2, 7, 8]])
        assert torch.equal(out[:, 3, 0], clean[:, 3, 0])  # read before it
        if bad != bad or engine.precision == "int8":
            assert out[:, 4:7, 0].isnan().all()
            assert out[:, 3:5, 1].isnan().all()
            assert hidden[:, :, 1].isnan().all()
            assert cell[:, :, 1].isnan().all()


# Rows of inputs: what their numbers are multiplied by, or what stands among them.
KINDS = st.sampled_from([1.0, 1.0, 0.0, 1e-3, 1e-41, 1e-30, 30.0, 1e20, 1e30, "one huge", "nan", "inf"])


def draw_rows(kinds, dim, seed):
    x = draw_x(len(kinds), dim, seed)
    place = seed % dim
    for row, kind in zip(x, kinds, strict=True):
        if kind == "one huge":
            row[place] = 1e25
        elif kind in ("nan", "inf"):
            row[place] = float(kind)
        else:
            row *= kind
    return x


@parametrize()
@cases
@given(data=st.data())
def test_any_shape_and_any_numbers(engine, data):
    """Odd sizes, lengths, clips and states; inputs that are huge, tiny, NaN or infinite."""
    cells, dim, projected = data.draw(sizes), data.draw(sizes), data.draw(st.booleans())
    dim = dim if projected else cells
    each, seed, number = data.draw(lengths), data.draw(seeds), data.draw(st.integers(1, 3))
    kinds = data.draw(st.lists(KINDS, min_size=sum(each), max_size=sum(each)))
    shape = make_shape(
        cells, skip=data.draw(st.booleans()), clip=data.draw(clips), cell_clip=data.draw(clips)
    )
    layers = make_layers(cells, dim, layers=number, projected=projected, seed=seed)
    x = draw_rows(kinds, dim, seed)
    start = draw_start(number, len(each), dim, cells, seed) if data.draw(st.booleans()) else None
    found = run(NativeLSTM(layers, shape, engine), x, each, start, number)
    if engine.precision != "float32":  # one such number makes the row NaN; in bfloat16 not always
        x[x.isinf().any(1)] = torch.nan
    expected = reference(layers, shape, x, each, start)
    # The sums of large inputs have an error of their own size; those of huge ones are far from zero.
    largest = max((float(row.abs().max()) for row in x if row.abs().max() < 1e4), default=0.0)
    tolerance = 2e-6 * max(1.0, largest / 4)
    for got, wanted in zip(found, expected, strict=True):
        assert not (got.isnan() & ~wanted.isnan()).any()
        if engine.precision != "bfloat16":
            assert torch.equal(got.isnan(), wanted.isnan())
        if engine.precision == "float32":
            torch.testing.assert_close(got.double(), wanted, rtol=0, atol=tolerance, equal_nan=True)
        elif (
            shape.cell_clip is not None and number == 1
        ):  # clipped, or near: rounding may saturate other gates
            limit = shape.cell_clip if got is found[2] else _largest_output(layers, shape)
            assert (got[~got.isnan()].abs() <= limit * 1.01 + 0.01).all()


def _largest_output(layers, shape):
    """What |h| never exceeds: its clip, and the sum of the weights that |σ · tanh| < 1 meets."""
    projections = [one.projection for one in layers[0]]
    if projections[0] is None:
        return 1.0
    reached = max(float(each.abs().sum(1).max()) for each in projections)
    return min(reached, shape.projection_clip or reached)


@parametrize("float32")
def test_tiny_and_large_numbers(engine):
    layers, shape = make_layers(24, 20), make_shape(24)
    lstm = NativeLSTM(layers, shape, engine)
    for scale in (1e-41, 1e-20, 1e4, 1e20):
        x = draw_x(9, 20, 6, scale)
        out, _, _ = run(lstm, x, [4, 5])
        torch.testing.assert_close(
            out.double(), reference(layers, shape, x, [4, 5])[0], rtol=0, atol=2e-6 if scale < 1 else 2e-5
        )


@parametrize()
def test_pickled_and_in_threads(engine):
    lstm = NativeLSTM(make_layers(40, 24), make_shape(40), engine)
    batches = [draw_x(30, 24, seed) for seed in range(8)]
    expected = [run(lstm, x, [10, 20])[0] for x in batches]
    again = pickle.loads(pickle.dumps(lstm))
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda x: run(again, x, [10, 20])[0], batches))
    assert all(map(torch.equal, found, expected))


@parametrize("float32")
def test_one_direction_leaves_the_other_alone(engine):
    lstm, x, each = NativeLSTM(make_layers(24, 20), make_shape(24), engine), draw_x(9, 20, 6), [4, 5]
    packing, both = Packing.of(torch.tensor(each)), run(lstm, x, each)[0]
    for direction in range(2):
        out = torch.full((2, 9, 2, 20), 7.0)
        hidden, _ = lstm(x, slice(direction, direction + 1), packing, None, out)
        assert hidden.shape == (2, 1, 2, 20)
        assert torch.equal(out[:, :, direction], both[:, :, direction])
        assert (out[:, :, 1 - direction] == 7).all()


@parametrize("float32")
def test_what_does_not_fit_is_refused(engine):
    lstm, x = NativeLSTM(make_layers(24, 20), make_shape(24), engine), draw_x(9, 20, 6)
    packing, out = Packing.of(torch.tensor([4, 5])), torch.empty(2, 9, 2, 20)
    both = slice(0, 2)

    def with_packing(**changes):
        return Packing(**{**vars(packing), **changes})

    for wrong_x, wrong_packing, start, wrong_out in (
        (x.double(), packing, None, out),
        (x.T.contiguous().T, packing, None, out),
        (x[:, :19].contiguous(), packing, None, out),
        (x[:8], packing, None, out),
        (x, packing, None, out[:1]),
        (x, packing, None, out.double()),
        (x, packing, None, torch.empty(2, 9, 20, 2).transpose(2, 3)),
        (x, packing, (torch.zeros(2, 2, 2, 20), torch.zeros(2, 2, 2, 23)), out),
        (x, with_packing(index=packing.index.int()), None, out),
        (x, with_packing(index=packing.index + 1), None, out),
        (x, with_packing(index=packing.index - 1), None, out),
        (x, with_packing(step_sizes=[2, 2, 2, 1, 2]), None, out),
        (x, with_packing(step_sizes=[3, 2, 2, 2]), None, out),
        (x, with_packing(step_sizes=[2, 2, 2, 2]), None, out),
        (x, with_packing(step_sizes=[2, 2, 2, 2, 1, 0]), None, out),
    ):
        with pytest.raises(ConfigError, match="native kernel"):
            lstm(wrong_x, both, wrong_packing, start, wrong_out)
    with pytest.raises(ConfigError, match="without projection gives 24 numbers, its input has 20"):
        NativeLSTM(make_layers(24, 20, projected=False), make_shape(24), engine)
    with pytest.raises(ConfigError, match="native kernel"):
        NativeLSTM(
            [[one.apply(torch.Tensor.double) for one in both] for both in make_layers(8, 8)],
            make_shape(8),
            engine,
        )
