"""The CRF against all paths, one by one."""

from itertools import product

import pytest
import torch

from elmokit.model import Packing
from elmokit.model.crf import CRF

TAGS = 3
LENGTHS = [2, 4, 0, 1, 4]


@pytest.fixture
def crf():
    legal = torch.ones(TAGS + 1, TAGS + 1, dtype=torch.bool)
    legal[0, 1] = legal[-1, 2] = legal[1, -1] = False
    crf = CRF(legal)
    torch.manual_seed(0)
    torch.nn.init.normal_(crf.weight)
    return crf


@pytest.fixture
def emissions():
    return torch.randn(sum(LENGTHS), TAGS, generator=torch.Generator().manual_seed(1))


def sentences():
    start = 0
    for length in LENGTHS:
        yield start, start + length
        start += length


def all_paths(crf, emissions):
    """The score of every path that is legal."""
    scores, weight = {}, crf.weight.detach()
    for path in product(range(TAGS), repeat=len(emissions)):
        steps = list(zip((TAGS, *path), (*path, TAGS), strict=True))
        if all(crf.legal[step] for step in steps):
            scores[path] = float(
                sum(weight[step] for step in steps)
                + sum(emissions[place, tag] for place, tag in enumerate(path))
            )
    return scores


@pytest.mark.parametrize("size", [1, 300])  # where exp(score) is nothing, or infinity
def test_loss_is_that_of_all_paths(crf, emissions, size):
    emissions = size * emissions
    packing = Packing.of(torch.tensor(LENGTHS))
    tags, expected = [], 0.0
    for start, end in sentences():
        scores = all_paths(crf, emissions[start:end])
        path = list(scores)[len(scores) // 2]
        tags += path
        expected += float(torch.tensor(list(scores.values())).logsumexp(0)) - scores[path] if path else 0.0
    found = crf.loss(emissions, torch.tensor(tags), packing)
    assert found.item() == pytest.approx(expected, rel=1e-5)


def test_best_paths(crf, emissions):
    found = crf.best_paths(emissions, Packing.of(torch.tensor(LENGTHS))).tolist()
    for start, end in sentences():
        scores = all_paths(crf, emissions[start:end])
        assert tuple(found[start:end]) == max(scores, key=scores.__getitem__)


def test_beliefs(crf, emissions):
    beliefs = crf.beliefs(emissions, Packing.of(torch.tensor(LENGTHS)))
    of_tokens = beliefs.of_tokens()
    torch.testing.assert_close(of_tokens.sum(dim=1), torch.ones(sum(LENGTHS)))
    for start, end in sentences():
        scores = all_paths(crf, emissions[start:end])
        total = torch.tensor(list(scores.values())).logsumexp(0).exp().item()
        probability = {path: torch.tensor(score).exp().item() / total for path, score in scores.items()}
        for place in range(end - start):
            for tag in range(TAGS):
                expected = sum(p for path, p in probability.items() if path[place] == tag)
                assert of_tokens[start + place, tag].item() == pytest.approx(expected, abs=1e-5)
        for first, last in ((0, 2), (1, 3), (0, end - start)):
            if last > end - start or first == last:
                continue
            for run in product(range(TAGS), repeat=last - first):
                expected = sum(p for path, p in probability.items() if path[first:last] == run)
                assert beliefs.of_run(start + first, list(run)) == pytest.approx(expected, abs=1e-5)


def test_gradients(crf, emissions):
    """Those of log Z are the marginals, and what is forbidden never moves."""
    packing = Packing.of(torch.tensor(LENGTHS))
    emissions.requires_grad_()
    tags = crf.best_paths(emissions, packing)
    crf.loss(emissions, tags, packing).backward()
    expected = crf.beliefs(emissions, packing).of_tokens()
    expected[torch.arange(len(tags)), tags] -= 1
    torch.testing.assert_close(emissions.grad, expected, atol=1e-5, rtol=1e-4)
    assert (crf.weight.grad[~crf.legal] == 0).all()
    assert crf.weight.grad.isfinite().all()


def test_the_batch_does_not_matter(crf, emissions):
    together = crf.best_paths(emissions, Packing.of(torch.tensor(LENGTHS))).tolist()
    for start, end in sentences():
        if end > start:
            alone = crf.best_paths(emissions[start:end], Packing.of(torch.tensor([end - start])))
            assert alone.tolist() == together[start:end]
