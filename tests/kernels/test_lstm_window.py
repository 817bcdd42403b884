"""The hand-written backward pass against autograd."""

import pytest
import torch

from elmokit.kernels import LayerWeights, lstm_window
from elmokit.model import BiLMConfig, WordConfig

STEPS, ROWS, CELL = 4, 3, 5
RESETS = [torch.tensor(rows, dtype=torch.long) for rows in ([1], [], [0, 2], [])]


def plain(x, weights, start, config):
    """The same, step by step, as the formulas stand in the docstring."""
    hidden, cell = start
    outputs = []
    for t, reset in enumerate(RESETS):
        keep = torch.ones(ROWS, 1, dtype=x.dtype).index_fill(0, reset, 0.0)
        hidden, cell = hidden * keep, cell * keep
        gates = x[t] @ weights.input_weight.T + hidden @ weights.state_weight.T + weights.bias
        i, f, j, o = gates.chunk(4, -1)
        cell = torch.sigmoid(f + config.forget_bias) * cell + torch.sigmoid(i) * torch.tanh(j)
        if config.cell_clip:
            cell = cell.clamp(-config.cell_clip, config.cell_clip)
        hidden = torch.sigmoid(o) * torch.tanh(cell)
        if weights.projection is not None:
            hidden = hidden @ weights.projection.T
            if config.projection_clip:
                hidden = hidden.clamp(-config.projection_clip, config.projection_clip)
        outputs.append(hidden)
    return torch.stack(outputs), hidden, cell


def make(projection, clip):
    dim = 3 if projection else CELL
    config = BiLMConfig(
        encoder=WordConfig(num_words=4),
        cell_dim=CELL,
        projection_dim=dim,
        num_layers=1,
        cell_clip=0.6 if clip else None,
        projection_clip=0.3 if clip else None,
        projection=projection,
    )
    random = torch.Generator().manual_seed(1)

    def draw(*shape):
        return torch.randn(shape, dtype=torch.float64, generator=random)

    parts = [draw(4 * CELL, dim), draw(4 * CELL, dim), draw(4 * CELL)]
    parts = [part.requires_grad_() for part in parts]
    last = draw(dim, CELL).requires_grad_() if projection else None
    start = (draw(ROWS, dim), 0.3 * draw(ROWS, CELL))
    return config, LayerWeights(*parts, last), draw(STEPS, ROWS, dim).requires_grad_(), start


@pytest.mark.parametrize("projection", [True, False])
@pytest.mark.parametrize("clip", [True, False])
def test_numbers_and_gradients_are_those_of_autograd(projection, clip):
    config, weights, x, start = make(projection, clip)
    out, (hidden, cell) = lstm_window(x, weights, start, RESETS, config)
    expected, last_hidden, last_cell = plain(x, weights, start, config)
    for found, wanted in ((out, expected), (hidden, last_hidden), (cell, last_cell)):
        torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)
    leaves = [leaf for leaf in (x, *weights) if leaf is not None]
    grad = torch.randn(out.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    for found, wanted in zip(
        torch.autograd.grad(out, leaves, grad), torch.autograd.grad(expected, leaves, grad), strict=True
    ):
        torch.testing.assert_close(found, wanted, rtol=1e-11, atol=1e-12)


def test_gradcheck():
    config, weights, x, start = make(projection=True, clip=False)

    class FreshEachTime(torch.autograd.Function):
        """gradcheck goes back through the same graph again and again, which the gates do not survive."""

        @staticmethod
        def forward(ctx, *inputs):
            ctx.save_for_backward(*inputs)
            return run(*inputs)

        @staticmethod
        def backward(ctx, grad):
            inputs = [part.detach().requires_grad_() for part in ctx.saved_tensors]
            with torch.enable_grad():
                return torch.autograd.grad(run(*inputs), inputs, grad)

    def run(x, *parts):
        return lstm_window(x, LayerWeights(*parts), start, RESETS, config)[0]

    assert torch.autograd.gradcheck(FreshEachTime.apply, (x, *weights))


def test_a_second_backward_is_refused():
    config, weights, x, start = make(projection=True, clip=False)
    out, _ = lstm_window(x, weights, start, RESETS, config)
    out.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="backward ran a second time"):
        out.sum().backward()


def test_bfloat16_is_near():
    config, weights, x, start = make(projection=True, clip=True)
    weights = LayerWeights(*(part.detach().float().requires_grad_() for part in weights))
    x, start = x.detach().float().requires_grad_(), tuple(part.float() for part in start)
    exact, _ = lstm_window(x, weights, start, RESETS, config)
    rough, _ = lstm_window(x, weights, start, RESETS, config, "bfloat16")
    torch.testing.assert_close(rough, exact, rtol=0, atol=0.05)
    (found,) = torch.autograd.grad(rough.sum(), weights.state_weight)
    (wanted,) = torch.autograd.grad(exact.sum(), weights.state_weight)
    assert torch.cosine_similarity(found.flatten(), wanted.flatten(), dim=0) > 0.99
