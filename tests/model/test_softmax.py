"""The output layer: probabilities, full and adaptive."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from elmokit import ConfigError
from elmokit.model import Softmax
from elmokit.model import softmax as module
from tests.tiny import random_hidden, random_softmax

CUTOFFS = (4, 7)


def test_full_by_hand():
    """Logits ln 1, ln 2, ln 5 are 1/8, 2/8, 5/8."""
    softmax = Softmax(torch.tensor([[0.0], [math.log(2)], [0.0]]), torch.tensor([0.0, 0.0, math.log(5)]))
    expected = torch.tensor([[0.125, 0.25, 0.625]])
    torch.testing.assert_close(softmax.log_probabilities(torch.ones(1, 1)).exp(), expected)
    found = softmax.target_log_probabilities(torch.ones(3, 1), torch.arange(3)).exp()
    torch.testing.assert_close(found, expected[0])


def test_adaptive_by_hand():
    """Head: words of 1 and 2, clusters of 1 and 4 in 8; in the first cluster 1 to 3, in the last 1 word."""
    softmax = Softmax(
        torch.zeros(5, 1),
        torch.tensor([1.0, 2.0, 1.0, 3.0, 1.0]).log(),
        (2, 4),
        torch.zeros(2, 1),
        torch.tensor([1.0, 4.0]).log(),
    )
    expected = torch.tensor([1 / 8, 2 / 8, 1 / 8 * 1 / 4, 1 / 8 * 3 / 4, 4 / 8])
    torch.testing.assert_close(softmax.log_probabilities(torch.ones(1, 1)).exp()[0], expected)
    found = softmax.target_log_probabilities(torch.ones(5, 1), torch.arange(5)).exp()
    torch.testing.assert_close(found, expected)


def test_adaptive_is_torchs():
    """With tails that are neither narrowed nor biased."""
    theirs = nn.AdaptiveLogSoftmaxWithLoss(6, 20, [5, 11], div_value=1.0, head_bias=True)
    with torch.no_grad():
        for tail in theirs.tail:
            tail[0].weight.copy_(torch.eye(6))
    head = theirs.head
    ours = Softmax(
        torch.cat([head.weight[:5], *(tail[1].weight for tail in theirs.tail)]).detach(),
        torch.cat([head.bias[:5], torch.zeros(15)]).detach(),
        (5, 11),
        head.weight[5:].detach(),
        head.bias[5:].detach(),
    )
    hidden, targets = random_hidden(40, 6), torch.arange(40) % 20
    torch.testing.assert_close(ours.log_probabilities(hidden), theirs.log_prob(hidden).detach())
    torch.testing.assert_close(
        ours.target_log_probabilities(hidden, targets), theirs(hidden, targets).output.detach()
    )


@given(
    words=st.integers(2, 40),
    rows=st.integers(0, 30),
    blocks=st.tuples(st.integers(1, 7), st.integers(1, 50)),
    data=st.data(),
)
def test_blocks_change_nothing_and_all_sums_to_one(words, rows, blocks, data):
    cutoffs = tuple(sorted(data.draw(st.sets(st.integers(1, words - 1), max_size=4))))
    softmax = random_softmax(words, cutoffs=cutoffs, scale=3.0)
    hidden = random_hidden(rows)
    targets = torch.tensor(data.draw(st.lists(st.integers(0, words - 1), min_size=rows, max_size=rows)))
    targets = targets.long()
    everything = softmax.log_probabilities(hidden)
    torch.testing.assert_close(everything.exp().sum(dim=1), torch.ones(rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_ROWS_AT_ONCE", blocks[0])
        patch.setattr(module, "_WORDS_AT_ONCE", blocks[1])
        found = softmax.target_log_probabilities(hidden, targets)
    torch.testing.assert_close(found, everything.gather(1, targets[:, None])[:, 0], atol=1e-5, rtol=1e-5)
    assert (found <= 0).all()


@pytest.mark.parametrize("cutoffs", [(), (1000, 50_000)])
def test_nothing_is_lost_in_large_sums(cutoffs):
    words = 300_000
    clusters = len(cutoffs)
    weights = (torch.zeros(clusters, 2), torch.zeros(clusters)) if cutoffs else ()
    softmax = Softmax(torch.zeros(words, 2), torch.zeros(words), cutoffs, *weights)
    found = softmax.target_log_probabilities(torch.zeros(1, 2), torch.tensor([words - 1]))
    size = words if not cutoffs else (1000 + 2) * 250_000
    assert found.item() == pytest.approx(-math.log(size), abs=2e-6)
    assert softmax.log_probabilities(torch.zeros(1, 2))[0, -1].item() == pytest.approx(
        -math.log(size), abs=2e-6
    )


@pytest.mark.parametrize("cutoffs", [(), CUTOFFS])
def test_huge_logits_stay_finite(cutoffs):
    softmax = random_softmax(10, cutoffs=cutoffs, scale=1e4)
    hidden, targets = random_hidden(10), torch.arange(10)
    assert torch.isfinite(softmax.log_probabilities(hidden)).all()
    assert torch.isfinite(softmax.target_log_probabilities(hidden, targets)).all()


def test_weights_that_are_being_trained_are_taken():
    softmax = Softmax(nn.Parameter(torch.zeros(4, 2)), nn.Parameter(torch.zeros(4)))
    found = softmax.target_log_probabilities(torch.zeros(1, 2, requires_grad=True), torch.tensor([1]))
    assert not found.requires_grad
    assert softmax.weight.requires_grad


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            [torch.zeros(5, 2), torch.zeros(4)],
            r"bias of the softmax is \[4\]; 5 words and 0 cutoffs ask for \[5\]",
        ),
        (
            [torch.zeros(5, 2), torch.zeros(5), (2,)],
            "cluster_weight of the softmax is missing; 5 words and 1",
        ),
        (
            [torch.zeros(5, 2), torch.zeros(5), (2,), torch.zeros(1, 3), torch.zeros(1)],
            r"cluster_weight of the softmax is \[1, 3\]; 5 words and 1 cutoffs ask for \[1, 2\]",
        ),
        (
            [torch.zeros(5, 2), torch.zeros(5), (3, 3), torch.zeros(2, 2), torch.zeros(2)],
            r"the cutoffs of the softmax are \[3, 3\]; expected rising numbers between 0 and its 5 words",
        ),
        ([torch.zeros(5, 2), torch.zeros(5), (5,), torch.zeros(1, 2), torch.zeros(1)], "the cutoffs of the"),
        ([torch.zeros(5, 2), torch.zeros(5), (0,), torch.zeros(1, 2), torch.zeros(1)], "the cutoffs of the"),
    ],
)
def test_parts_that_do_not_fit(arguments, message):
    with pytest.raises(ConfigError, match=message):
        Softmax(*arguments)
