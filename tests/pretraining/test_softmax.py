"""The three softmaxes against autograd, and the sampler against its formula."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from elmokit.kernels import softmax_blocks as module
from elmokit.pretraining.bilm.softmax_training import (
    AdaptiveSoftmax,
    FullSoftmax,
    RowGradient,
    SampledSoftmax,
    SoftmaxTable,
    coalesce,
    draw_log_uniform,
    log_expected_count,
)

WORDS, DIM, POSITIONS = 30, 4, 50


def make(cutoffs=()):
    random = torch.Generator().manual_seed(0)
    table = SoftmaxTable(WORDS, DIM, cutoffs).double()
    table.start(np.arange(WORDS, 0, -1), random)
    hidden = torch.randn(POSITIONS, DIM, dtype=torch.float64, generator=random).requires_grad_()
    targets = torch.randint(WORDS, (POSITIONS,), generator=random)
    return table, hidden, targets


def dense(table, gradients):
    """What the rows add up to, as a whole table."""
    gradient = coalesce(gradients)
    weight = torch.zeros_like(table.weight).index_add(0, gradient.rows, gradient.weight)
    return weight, torch.zeros_like(table.bias).index_add(0, gradient.rows, gradient.bias)


def check(found, loss, table, hidden, scale):
    assert found.loss == pytest.approx(loss.item(), rel=1e-9)
    expected = torch.autograd.grad(scale * loss, [hidden, table.weight, table.bias])
    weight, bias = dense(table, found.table)
    for a, b in zip((found.hidden, weight, bias), expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-9)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(module, "_BLOCK_NUMBERS", 16 * WORDS)  # so that there are several


def test_full():
    table, hidden, targets = make()
    loss = functional.cross_entropy(hidden @ table.weight.T + table.bias, targets, reduction="sum")
    found = FullSoftmax()(table, hidden.detach(), targets, 0.1, torch.Generator())
    check(found, loss, table, hidden, 0.1)


def test_adaptive_is_the_softmax_that_is_exported():
    table, hidden, targets = make(cutoffs=(5, 12))
    found = AdaptiveSoftmax()(table, hidden.detach(), targets, 0.1, torch.Generator())
    of_targets = table.export().target_log_probabilities(hidden.detach(), targets)
    assert found.loss == pytest.approx(-of_targets.sum().item(), rel=1e-9)
    logits = hidden @ table.weight.T + table.bias
    head = torch.cat([logits[:, :5], logits[:, WORDS:]], dim=1).log_softmax(1)
    tails = [head[:, [5]] + logits[:, 5:12].log_softmax(1), head[:, [6]] + logits[:, 12:WORDS].log_softmax(1)]
    log_p = torch.cat([head[:, :5], *tails], dim=1)
    check(found, -log_p.gather(1, targets[:, None]).sum(), table, hidden, 0.1)


def test_sampled():
    table, hidden, targets = make()
    found = SampledSoftmax(12)(table, hidden.detach(), targets, 0.1, torch.Generator().manual_seed(5))
    drawn, tries = draw_log_uniform(WORDS, 12, torch.Generator().manual_seed(5))
    correction = log_expected_count(torch.arange(WORDS), WORDS, tries)
    logits = hidden @ table.weight.T + table.bias - correction  # of all words; those not drawn are left out
    others = logits[:, drawn].masked_fill(drawn == targets[:, None], -math.inf)
    own = logits.gather(1, targets[:, None])
    loss = (torch.cat([others, own], dim=1).logsumexp(1) - own.squeeze(1)).sum()
    check(found, loss, table, hidden, 0.1)


def test_the_sampler_draws_by_rank():
    counts = np.zeros(WORDS)
    random = torch.Generator().manual_seed(0)
    for _ in range(4000):
        drawn, tries = draw_log_uniform(WORDS, 1, random)
        assert tries == 1
        counts[drawn.numpy()] += 1
    chance = np.log((np.arange(WORDS) + 2) / (np.arange(WORDS) + 1)) / np.log(WORDS + 1)
    assert chance.sum() == pytest.approx(1)
    np.testing.assert_allclose(counts / 4000, chance, atol=0.025)


def test_drawn_words_differ_and_the_expected_count_counts_all_draws():
    drawn, tries = draw_log_uniform(WORDS, 20, torch.Generator().manual_seed(3))
    assert len(set(drawn.tolist())) == 20 <= tries
    chance = math.log(2) / math.log(WORDS + 1)  # of the first word
    expected = 1 - (1 - chance) ** tries
    assert log_expected_count(torch.tensor([0]), WORDS, tries).exp().item() == pytest.approx(expected)


def test_the_bias_starts_at_the_frequencies():
    table = SoftmaxTable(4, 2, cutoffs=(2,))
    table.start(np.array([5, 3, 1, 1]) - 0.5, torch.Generator())
    np.testing.assert_allclose(table.bias.detach().exp(), [0.5, 0.3, 0.1, 0.1, 0.2], rtol=1e-6)
    table.start(None, torch.Generator())
    assert not table.bias.any()


def test_export_and_back():
    table, _, _ = make(cutoffs=(5, 12))
    again = SoftmaxTable.of(table.export()).double()
    torch.testing.assert_close(again.weight, table.weight)
    torch.testing.assert_close(again.bias, table.bias)


def test_coalesce_adds_rows_that_stand_twice():
    first = RowGradient(torch.tensor([3, 1]), torch.tensor([[1.0], [2.0]]), torch.tensor([1.0, 2.0]))
    second = RowGradient(torch.tensor([3]), torch.tensor([[10.0]]), torch.tensor([10.0]))
    both = coalesce([first, second])
    assert both.rows.tolist() == [1, 3]
    assert both.weight.tolist() == [[2.0], [11.0]]
    assert both.bias.tolist() == [2.0, 11.0]
