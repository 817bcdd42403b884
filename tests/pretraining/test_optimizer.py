"""Updates by rows are those of torch's own optimisers; clipping."""

import math
from copy import deepcopy

import pytest
import torch

from elmokit.kernels.threads import PairOfThreads
from elmokit.model import BiLM, BiLMConfig, WordConfig
from elmokit.pretraining.bilm.bilm_optimizer import Optimizer
from elmokit.pretraining.bilm.recipe import Recipe
from elmokit.pretraining.bilm.softmax_training import RowGradient, SoftmaxTable

CONFIG = BiLMConfig(encoder=WordConfig(num_words=4), cell_dim=3, projection_dim=2, num_layers=1)


def make(**changes):
    recipe = Recipe(model=CONFIG, **{"clip_norm": 1e9, **changes})
    model, table = BiLM(CONFIG), SoftmaxTable(4, 2)
    table.start(None, torch.Generator().manual_seed(0))
    return model, table, Optimizer(model, table, recipe, PairOfThreads(torch.device("cpu")))


def gradient(rows, seed):
    random = torch.Generator().manual_seed(seed)
    return RowGradient(
        torch.tensor(rows),
        torch.randn(len(rows), 2, generator=random),
        torch.randn(len(rows), generator=random),
    )


def test_adam_by_rows_is_adam_of_each_row():
    _, table, optimizer = make()
    plain = [torch.nn.Parameter(row.clone()) for row in table.weight.detach()]
    adams = [torch.optim.Adam([row], lr=0.01, betas=(0.9, 0.999)) for row in plain]
    for seed, rows in enumerate([[0, 1, 2, 3], [1], [1, 3], [0], [1, 2]]):
        found = gradient(rows, seed)
        optimizer.step(found, 0.01)
        for row, grad in zip(rows, found.weight, strict=True):
            plain[row].grad = grad.clone()
            adams[row].step()
    torch.testing.assert_close(table.weight, torch.stack(plain))


def test_rows_without_a_gradient_stay():
    _, table, optimizer = make()
    before = table.weight.detach().clone()
    optimizer.step(gradient([2], 0), 0.01)
    assert (table.weight != before).any(dim=1).tolist() == [False, False, True, False]


def test_adagrad_starts_from_one_as_tensorflow():
    _, table, optimizer = make(optimizer="adagrad")
    before = table.weight.detach().clone()
    found = gradient([1], 0)
    optimizer.step(found, 0.2)
    expected = before[1] - 0.2 * found.weight[0] / (1 + found.weight[0] ** 2).sqrt()
    torch.testing.assert_close(table.weight[1], expected)


def test_all_gradients_are_clipped_together():
    model, table, optimizer = make(optimizer="adagrad", clip_norm=1.0)
    first = next(model.parameters())
    first.grad = torch.zeros_like(first)
    first.grad[0, 0] = 3.0
    before = table.bias.detach().clone()
    norm = optimizer.step(RowGradient(torch.tensor([0]), torch.zeros(1, 2), torch.tensor([4.0])), 1.0)
    assert norm == pytest.approx(5.0)
    assert (before - table.bias)[0].item() == pytest.approx(0.8 / math.sqrt(1 + 0.64))


def test_gradients_that_are_not_numbers_change_nothing():
    _, table, optimizer = make()
    before = table.weight.detach().clone()
    bad = RowGradient(torch.tensor([0]), torch.full((1, 2), torch.nan), torch.zeros(1))
    assert math.isnan(optimizer.step(bad, 0.1))
    torch.testing.assert_close(table.weight.detach(), before)


def test_state_goes_on():
    _, table, optimizer = make()
    optimizer.step(gradient([0, 1], 0), 0.01)
    kept, weight = deepcopy(optimizer.state_dict()), table.weight.detach().clone()
    optimizer.step(gradient([0, 1], 1), 0.01)
    _, other, again = make()
    with torch.no_grad():
        other.weight.copy_(weight)
    again.load_state_dict(kept)
    again.step(gradient([0, 1], 1), 0.01)
    torch.testing.assert_close(other.weight, table.weight)
