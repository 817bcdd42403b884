"""One step of training against plain autograd through the model itself."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn import functional

from elmokit.model import BiLM, BiLMConfig, CharCNNConfig
from elmokit.pretraining.bilm.network import TrainingNetwork
from elmokit.pretraining.bilm.recipe import Recipe
from elmokit.pretraining.bilm.softmax_training import SoftmaxTable
from elmokit.pretraining.bilm.windows import Windows
from elmokit.text import character_matrix, used_characters

WORDS = ["<S>", "</S>", "<UNK>", "the", "cat", "sat", "zyx"]  # the last one is out of vocabulary
NUM_WORDS = 6
SENTENCES = [[3, 4, 5], [3, 6], [5, 4, 3, 4], [4]]


def corpus(sentences):
    tokens = np.concatenate([[0, *sentence, 1] for sentence in sentences]).astype(np.int32)
    return SimpleNamespace(tokens=tokens, starts=np.cumsum([0] + [len(s) + 2 for s in sentences]))


def encoder_inputs(types):
    matrix = character_matrix([WORDS[i] for i in types], max_characters=8)
    return torch.from_numpy(matrix), torch.from_numpy(used_characters(matrix))


def make(cutoffs=(), **changes):
    encoder = CharCNNConfig(filters=((1, 3), (2, 4)), embedding_dim=3, max_characters=8, num_highway=1)
    config = BiLMConfig(
        encoder=encoder,
        cell_dim=5,
        projection_dim=4,
        num_layers=2,
        cell_clip=1.0,
        projection_clip=0.5,
        skip_connections=True,
    )
    recipe = Recipe(
        model=config, batch=1, unroll=14, reset=1.0, dropout=0.0, **{"softmax": "full", **changes}
    )
    random = torch.Generator().manual_seed(0)
    model = BiLM(config)
    model.reset_parameters(random)
    table = SoftmaxTable(NUM_WORDS, 4, cutoffs)
    table.start(np.arange(1, NUM_WORDS + 1), random)
    return model.double(), table.double(), recipe


def plain_losses(model, table):
    """Each sentence by itself through the model, as it is used when embedding."""
    losses = [[], []]
    for sentence in SENTENCES:
        ids = [0, *sentence, 1]
        x = model.encoder(*encoder_inputs(ids))
        layers, _ = model(x, torch.tensor([len(ids)]))
        known = torch.tensor([i if i < NUM_WORDS else 2 for i in ids])
        for direction, rows, targets in ((0, slice(0, -1), known[1:]), (1, slice(1, None), known[:-1])):
            hidden = layers[-1, rows, direction * 4 : direction * 4 + 4]
            logits = functional.linear(hidden, table.weight[:NUM_WORDS], table.bias[:NUM_WORDS])
            losses[direction].append(functional.cross_entropy(logits, targets, reduction="sum"))
    return [sum(part) / 14 for part in losses]


def one_step(model, table, recipe):
    network = TrainingNetwork(model, table, recipe, encoder_inputs)
    windows = Windows([corpus(SENTENCES)], rows=1, steps=recipe.unroll, order="document", seed=0)
    windows._begin(0)
    windows._shift = 0
    return network.step(windows(0), [type(s)(s.hidden.double(), s.cell.double()) for s in model.start(1)], 0)


def test_a_step_is_the_model_trained_as_it_is_used():
    model, table, recipe = make()
    forward, backward = plain_losses(model, table)
    ((forward + backward) / 2).backward()
    expected = {name: p.grad.clone() for name, p in model.named_parameters()}
    result = one_step(model, table, recipe)
    assert result.forward == pytest.approx(forward.item(), abs=1e-12)
    assert result.backward == pytest.approx(backward.item(), abs=1e-12)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name], rtol=1e-9, atol=1e-12, msg=name)
    assert result.table.rows.tolist() == list(range(NUM_WORDS))
    torch.testing.assert_close(result.table.weight, table.weight.grad)
    torch.testing.assert_close(result.table.bias, table.bias.grad)


def test_sampling_every_word_is_the_full_softmax():
    full = one_step(*make())
    sampled = one_step(*make(softmax="sampled", negatives=100))
    assert sampled.forward == pytest.approx(full.forward, abs=1e-12)
    torch.testing.assert_close(sampled.table.weight, full.table.weight)


def test_two_processes_have_the_gradients_of_one():
    model, table, recipe = make()
    recipe = Recipe(**{**recipe.__dict__, "batch": 2, "unroll": 7})
    windows = Windows([corpus(SENTENCES)], rows=2, steps=7, order="document", seed=0)
    state = [type(s)(s.hidden.double(), s.cell.double()) for s in model.start(2)]
    one = TrainingNetwork(model, table, recipe, encoder_inputs).step(windows(0), state, 0)
    expected = [p.grad.clone() for p in model.parameters()]
    sums = [torch.zeros_like(p) for p in model.parameters()]
    losses = []
    for row in range(2):
        rows = slice(row, row + 1)
        half = [s.rows(torch.tensor([row])) for s in state]
        network = TrainingNetwork(model, table, recipe, encoder_inputs, rows=rows)
        losses.append(network.step(windows(0, rows), half, 0).forward)
        for total, parameter in zip(sums, model.parameters(), strict=True):
            total += parameter.grad
    assert np.mean(losses) == pytest.approx(one.forward, abs=1e-12)
    for total, wanted in zip(sums, expected, strict=True):
        torch.testing.assert_close(total, wanted)


def test_frozen_trains_the_softmax_alone():
    model, table, recipe = make()
    windows = Windows([corpus(SENTENCES)], rows=1, steps=14, order="document", seed=0)
    state = [type(s)(s.hidden.double(), s.cell.double()) for s in model.start(1)]
    result = TrainingNetwork(model, table, recipe, encoder_inputs, frozen=True).step(windows(0), state, 0)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert result.table.weight.abs().sum() > 0


@pytest.mark.parametrize("changes", [{"variational": True}, {"weight_drop": 0.3}, {}])
def test_dropout_is_the_same_in_the_same_step_and_another_in_the_next(changes):
    model, table, recipe = make(**changes)
    recipe = Recipe(**{**recipe.__dict__, "dropout": 0.5})
    windows = Windows([corpus(SENTENCES)], rows=1, steps=14, order="document", seed=0)
    state = [type(s)(s.hidden.double(), s.cell.double()) for s in model.start(1)]
    network = TrainingNetwork(model, table, recipe, encoder_inputs)
    losses = [network.step(windows(0), state, step).forward for step in (0, 0, 1)]
    assert losses[0] == losses[1] != losses[2]
