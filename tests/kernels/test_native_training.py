"""The native kernel in training against float64 and autograd, for odd shapes."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from elmokit.errors import ConfigError
from elmokit.kernels import LayerWeights, PairOfThreads, lstm_window
from elmokit.kernels.lstm_training import _LSTM
from elmokit.kernels.native import (
    NativeLinear,
    NativeMaxima,
    NativeTrainingLSTM,
    native_softmax,
    training_engine,
)
from elmokit.kernels.softmax_blocks import softmax_gradients
from elmokit.model import CharCNN, CharCNNConfig
from tests.kernels.native import ENGINES, cases, clips, make_shape, parametrize, seeds

needs_library = pytest.mark.skipif(not ENGINES, reason="no native kernel on this machine")
pytestmark = needs_library

sizes = st.lists(st.integers(1, 20), min_size=1, max_size=6).map(lambda rows: sorted(rows, reverse=True))
dims = st.integers(1, 80)


class Layer:
    """A layer, its inputs and the gradient from above, drawn at random."""

    def __init__(self, seed, sizes, inputs, outputs, cells, *, projected=True, resets=False, start=True):
        self.random = torch.Generator().manual_seed(seed)
        outputs = outputs if projected else cells
        self.sizes = sizes
        self.x = self.draw(sum(sizes), inputs)
        self.weights = LayerWeights(
            self.draw(4 * cells, inputs) * inputs**-0.5,
            self.draw(4 * cells, outputs) * outputs**-0.5,
            self.draw(4 * cells) * 0.3,
            self.draw(outputs, cells) * cells**-0.5 if projected else None,
        )
        self.start = (self.draw(sizes[0], outputs), self.draw(sizes[0], cells)) if start else None
        self.resets = None
        if resets:
            chance = [torch.rand(rows, generator=self.random) for rows in sizes]
            self.resets = [(part < 0.3).nonzero().squeeze(1) for part in chance]
        self.grad = self.draw(sum(sizes), outputs)

    def draw(self, *shape):
        return torch.randn(shape, generator=self.random)

    def run(self, function, kind, shape, dtype=torch.float32):
        """Outputs, last states, and the gradients of x and of the weights."""
        leaves = [part.to(dtype).requires_grad_() for part in (self.x, *self.weights) if part is not None]
        parts = [*leaves, *([None] * (5 - len(leaves)))]
        start = self.start
        if start is None and function is _LSTM:
            start = (
                torch.zeros_like(self.grad[: self.sizes[0]]),
                self.x.new_zeros(self.sizes[0], shape.cell_dim),
            )
        start = start and tuple(part.to(dtype) for part in start)
        results = function.apply(*parts, start, self.sizes, self.resets, shape, kind)
        grads = torch.autograd.grad(results[0], leaves, self.grad.to(dtype))
        return [part.detach() for part in (*results, *grads)]


def error(found, wanted):
    """The largest error of each tensor, as a share of its largest number."""
    return [
        float((a.double() - b.detach()).abs().max() / b.detach().abs().max().clamp_min(1e-3))
        for a, b in zip(found, wanted, strict=True)
    ]


@parametrize("float32")
@cases
@given(
    seed=seeds, sizes=sizes, inputs=dims, outputs=dims, cells=dims, cell_clip=clips, clip=clips,
    projected=st.booleans(), resets=st.booleans(), start=st.booleans(),
)  # fmt: skip
def test_layer(engine, seed, sizes, inputs, outputs, cells, cell_clip, clip, projected, resets, start):
    shape = make_shape(cells, clip=clip, cell_clip=cell_clip)
    layer = Layer(seed, sizes, inputs, outputs, cells, projected=projected, resets=resets, start=start)
    wanted = layer.run(_LSTM, "float32", shape, torch.float64)
    found = layer.run(NativeTrainingLSTM, engine, shape)
    # A number that is clipped in one of the two and not in the other makes a gradient differ by more.
    tolerance = 1e-5 if cell_clip is None and (clip is None or not projected) else 1e-2
    assert max(error(found, wanted)) < tolerance
    assert max(error(found[:3], wanted[:3])) < 1e-5


@parametrize("bfloat16")
@pytest.mark.parametrize("projected", [True, False])
def test_layer_in_bfloat16_is_as_near_as_torch(engine, projected):
    shape = make_shape(70)
    layer = Layer(3, [33] * 4 + [7, 1], 50, 40, 70, projected=projected, resets=True)
    wanted = layer.run(_LSTM, "float32", shape, torch.float64)
    found = layer.run(NativeTrainingLSTM, engine, shape)
    with_torch = layer.run(_LSTM, "bfloat16", shape)
    for mine, other in zip(error(found, wanted), error(with_torch, wanted), strict=True):
        assert mine < max(1.2 * other, 2e-3)


@parametrize("float32", "bfloat16")
def test_two_threads_give_the_same_to_the_bit(engine):
    shape, layer = make_shape(64), Layer(4, [40, 40, 9], 30, 32, 64, resets=True)
    runs = PairOfThreads(torch.device("cpu")).map(
        lambda _: layer.run(NativeTrainingLSTM, engine, shape), range(2)
    )
    for a, b, c in zip(*runs, layer.run(NativeTrainingLSTM, engine, shape), strict=True):
        assert torch.equal(a, b)
        assert torch.equal(a, c)


def test_lstm_window_uses_the_engine_and_refuses_a_second_backward(monkeypatch):
    monkeypatch.delenv("ELMOKIT_KERNEL", raising=False)
    layer = Layer(5, [4, 4], 6, 6, 8)
    x = layer.x.view(2, 4, 6).requires_grad_()
    resets = [torch.tensor([1]), torch.tensor([], dtype=torch.long)]
    out, _ = lstm_window(x, layer.weights, layer.start, resets, make_shape(8))
    assert "NativeTrainingLSTM" in type(out.grad_fn.next_functions[0][0]).__name__
    out.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="backward ran a second time"):
        out.sum().backward()


def test_what_the_kernel_does_not_train_is_left_to_torch(monkeypatch):
    monkeypatch.delenv("ELMOKIT_KERNEL", raising=False)
    x = torch.zeros(1)
    assert training_engine("float32", x) is not None
    assert training_engine("int8", x) is None
    assert training_engine("float32", x.double()) is None
    monkeypatch.setenv("ELMOKIT_KERNEL", "torch")
    assert training_engine("float32", x) is None


def softmax_case(seed, positions, words, dim, beside):
    random = torch.Generator().manual_seed(seed)
    hidden, weight, bias, score = (
        torch.randn(shape, generator=random)
        for shape in ((positions, dim), (words, dim), (words,), (positions,))
    )
    columns = torch.randint(-1 if beside else 0, words, (positions,), generator=random)
    return hidden, weight, bias, columns, score if beside else None


def softmax_reference(hidden, weight, bias, columns, score):
    leaves = [part.double().requires_grad_() for part in (hidden, weight, bias, score) if part is not None]
    logits = leaves[0] @ leaves[1].T + leaves[2]
    if score is None:
        loss = functional.cross_entropy(logits, columns, reduction="sum")
    else:
        words = torch.arange(len(weight))
        logits = logits.masked_fill(words == columns[:, None], -torch.inf)
        loss = (torch.cat([logits, leaves[3][:, None]], dim=1).logsumexp(1) - leaves[3]).sum()
    return loss.item(), torch.autograd.grad(loss, leaves)


@parametrize("float32")
@cases
@given(
    seed=seeds, positions=st.integers(1, 500), words=st.integers(1, 300), dim=st.integers(1, 80),
    beside=st.booleans(),
)  # fmt: skip
def test_softmax(engine, seed, positions, words, dim, beside):
    case = softmax_case(seed, positions, words, dim, beside)
    found = native_softmax(engine, *case)
    loss, wanted = softmax_reference(*case)
    assert found.loss == pytest.approx(loss, rel=1e-5, abs=1e-4)
    assert max(error([part for part in found[1:] if part is not None], wanted)) < 1e-5


@parametrize("float32", "bfloat16")
def test_softmax_of_huge_scores(engine):
    hidden, weight, bias, columns, score = softmax_case(1, 30, 20, 16, beside=True)
    found = native_softmax(engine, 100 * hidden, weight, bias, columns, score)
    loss, wanted = softmax_reference(100 * hidden, weight, bias, columns, score)
    assert found.loss == pytest.approx(loss, rel=0.01)
    assert all(part.isfinite().all() for part in found[1:])
    assert max(error(found[1:], wanted)) < (1e-3 if engine.precision == "float32" else 0.5)


@parametrize("bfloat16")
@pytest.mark.parametrize("beside", [True, False])
def test_softmax_in_bfloat16_is_as_near_as_torch(engine, beside, monkeypatch):
    case = softmax_case(2, 700, 500, 64, beside=beside)
    loss, wanted = softmax_reference(*case)
    found = native_softmax(engine, *case)
    monkeypatch.setenv("ELMOKIT_KERNEL", "torch")
    with_torch = softmax_gradients(*case, "bfloat16")
    assert found.loss == pytest.approx(loss, rel=1e-3)
    for a, b, exact in zip(found[1:], with_torch[1:], wanted, strict=False):
        assert error([a], [exact])[0] < max(1.2 * error([b], [exact])[0], 2e-3)


@parametrize("float32")
@cases
@given(seed=seeds, rows=st.integers(1, 400), inputs=dims, outputs=dims)
def test_linear(engine, seed, rows, inputs, outputs):
    random = torch.Generator().manual_seed(seed)
    parts = [
        torch.randn(shape, generator=random) for shape in ((rows, inputs), (outputs, inputs), (outputs,))
    ]
    grad = torch.randn(rows, outputs, generator=random)
    leaves, exact = (
        [part.to(dtype).requires_grad_() for part in parts] for dtype in (torch.float32, torch.double)
    )
    out, wanted = NativeLinear.apply(*leaves, engine), functional.linear(*exact)
    found = [out.detach(), *torch.autograd.grad(out, leaves, grad)]
    assert max(error(found, [wanted, *torch.autograd.grad(wanted, exact, grad.double())])) < 1e-5


def tokens(random, count, length, characters):
    """Ids with padding (0) from some place on, and the places."""
    used = torch.randint(1, length + 1, (count,), generator=random)
    ids = torch.randint(1, characters, (count, length), generator=random)
    return ids.masked_fill(torch.arange(length) >= used[:, None], 0), used


@parametrize("float32")
@cases
@given(seed=seeds, count=st.integers(1, 40), length=st.integers(6, 12), width=st.integers(1, 6), filters=dims)
def test_window_maxima(engine, seed, count, length, width, filters):
    random = torch.Generator().manual_seed(seed)
    ids, used = tokens(random, count, length, 9)
    table = torch.randn(width * 9, filters, generator=random).requires_grad_()
    exact = table.detach().double().requires_grad_()
    rows = ids.unfold(1, width, 1) + 9 * torch.arange(width)  # (count, windows, width), all of them
    wanted = exact[rows].sum(2).amax(1)
    found = NativeMaxima.apply(table, ids, used, width, engine)
    grad = torch.randn(found.shape, generator=random)
    results = found.detach(), *torch.autograd.grad(found, table, grad)
    assert max(error(results, [wanted, *torch.autograd.grad(wanted, exact, grad.double())])) < 1e-5


def test_ids_outside_the_table_are_refused():
    table, used = torch.zeros(9, 4), torch.tensor([2])
    with pytest.raises(ConfigError, match="arguments are inconsistent in maxima"):
        NativeMaxima.apply(table, torch.tensor([[1, 9]]), used, 1, ENGINES[0])


def test_the_encoder_trains_as_with_torch(monkeypatch):
    config = CharCNNConfig(filters=((1, 8), (3, 20)), embedding_dim=5, max_characters=12, num_highway=2)
    encoder, random = CharCNN(config, 16), torch.Generator().manual_seed(1)
    encoder.reset_parameters(random)
    ids, used = tokens(random, 200, 12, 261)
    grad = torch.randn(200, 16, generator=random)

    def run():
        out = encoder(ids, used)
        return [out.detach(), *torch.autograd.grad(out, list(encoder.parameters()), grad)]

    monkeypatch.delenv("ELMOKIT_KERNEL", raising=False)
    found = run()
    monkeypatch.setenv("ELMOKIT_KERNEL", "torch")
    wanted = [part.double() for part in run()]
    assert max(error(found, wanted)) < 1e-5
