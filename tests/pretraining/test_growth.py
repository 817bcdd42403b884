"""A model that grows predicts what it did, knows its words by name, and has more to learn with."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import elmokit
from elmokit.cli import main
from elmokit.errors import ConfigError
from elmokit.language_model import LanguageModel
from elmokit.model import BiLM, BiLMConfig, CharCNNConfig, Softmax, WordConfig
from elmokit.pretraining.bilm.growth import grow_model, grow_softmax, words_of_both
from elmokit.pretraining.bilm.softmax_training import SoftmaxTable
from elmokit.text import Vocabulary
from tests.small_runs import sentences

SMALL = BiLMConfig(
    encoder=CharCNNConfig(filters=((1, 4), (3, 6)), embedding_dim=4, max_characters=12, num_highway=2),
    cell_dim=12,
    projection_dim=8,
    num_layers=2,
    cell_clip=3.0,
    projection_clip=3.0,
    skip_connections=True,
)
WIDE = replace(
    SMALL,
    encoder=replace(SMALL.encoder, filters=((1, 4), (2, 3), (3, 9))),
    cell_dim=20,
    projection_dim=11,
)
OLD = Vocabulary(["<S>", "</S>", "<UNK>", "the", "river", "bank"])
NEW = Vocabulary(["<S>", "</S>", "<UNK>", "bank", "the", "Fed"])


def drawn(config, seed):
    model = BiLM(config)
    model.reset_parameters(torch.Generator().manual_seed(seed))
    with torch.no_grad():  # biases start at zero, where a mistake would not show
        for parameter in model.parameters():
            parameter += torch.randn(parameter.shape, generator=torch.Generator().manual_seed(seed)) * 0.05
    return model.eval()


def layers(model, tokens, vocabulary=None):
    x = model.encoder(*model.config.encoder.inputs(vocabulary, None)(tokens))
    return model(x, torch.tensor([len(tokens)]))[0].detach().unflatten(-1, (2, -1))  # (L + 1, S, 2, P)


@pytest.fixture
def grown():
    old, new = drawn(SMALL, 1), drawn(WIDE, 2)
    grow_model(old, new, torch.empty(0, 2, dtype=torch.long))
    return SimpleNamespace(old=old, new=new)


def test_old_outputs_are_what_they_were_and_new_ones_are_alive(grown):
    tokens = ["the", "bank", "raised", "its", "rates", "."]
    before, after = layers(grown.old, tokens), layers(grown.new, tokens)
    torch.testing.assert_close(after[..., :8], before, rtol=1e-5, atol=1e-6)
    assert (after[..., 8:].std(dim=(1,)) > 0).all()


def test_known_words_keep_their_scores_under_a_new_vocabulary(grown):
    random = torch.Generator().manual_seed(3)
    softmax = Softmax(torch.randn(6, 8, generator=random), torch.randn(6, generator=random))
    table = SoftmaxTable(6, 11)
    table.start(np.array([9, 9, 5, 4, 3, 1]), random)
    frequency = table.bias.detach().clone()
    grow_softmax(softmax, table, words_of_both(NEW, OLD))
    tokens = ["the", "bank"]
    hidden, wide = (layers(model, tokens)[-1, :, 0] for model in (grown.old, grown.new))
    before = hidden @ softmax.weight.T + softmax.bias
    after = (wide @ table.weight.T + table.bias).detach()
    for word in ("<UNK>", "bank", "the"):
        torch.testing.assert_close(after[:, NEW.id(word)], before[:, OLD.id(word)], rtol=1e-5, atol=1e-5)
    # "Fed" is new: as the known words of the rarer half ("bank" and "the"), its bias from its frequency.
    torch.testing.assert_close(table.weight[5, :8], softmax.weight[[5, 3]].mean(0))
    usual = (softmax.bias[[5, 3]] - frequency[[3, 4]]).mean()
    torch.testing.assert_close(table.bias[5], frequency[5] + usual)


def test_word_vectors_follow_their_words():
    old = drawn(replace(SMALL, encoder=WordConfig(num_words=len(OLD))), 1)
    new = drawn(replace(WIDE, encoder=WordConfig(num_words=len(NEW))), 2)
    grow_model(old, new, words_of_both(NEW, OLD))
    tokens = ["the", "bank", "bank"]
    torch.testing.assert_close(
        layers(new, tokens, NEW)[..., :8], layers(old, tokens, OLD), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cell_dim": 10}, "can only grow; the recipe has cell_dim 10 \\(was 12\\)"),
        ({"encoder": replace(SMALL.encoder, filters=((1, 4),))}, "0 filters of width 3 \\(were 6\\)"),
        ({"num_layers": 3}, "the recipe must have the same shape"),
        ({"encoder": WordConfig(num_words=6)}, "the recipe must have the same shape"),
    ],
)
def test_what_cannot_grow(change, message):
    with pytest.raises(ConfigError, match=message):
        grow_model(drawn(SMALL, 1), drawn(replace(SMALL, **change), 2), torch.empty(0, 2, dtype=torch.long))


def test_a_run_that_grows_and_is_continued(tmp_path):
    (tmp_path / "text.txt").write_text("\n".join(sentences(120)) + "\n", encoding="utf-8")
    shape = "batch = 4\nunroll = 5\nnegatives = 8\n[model]\ncell_dim = {}\nprojection_dim = {}\n"
    shape += "[model.encoder]\nfilters = [[1, {}]]\nembedding_dim = 4\nmax_characters = 12\n"
    (tmp_path / "small.toml").write_text(shape.format(16, 8, 8), encoding="utf-8")
    (tmp_path / "wide.toml").write_text(shape.format(24, 12, 10), encoding="utf-8")

    def run(*arguments):
        result = CliRunner().invoke(main, ["pretrain", *map(str, arguments)])
        assert result.exit_code == 0, result.output

    text = (tmp_path / "text.txt", "--language", "en", "--lines", "--min-count", "1", "--workers", "1")
    small, wide = tmp_path / "small", tmp_path / "wide"
    run(*text, "--recipe", tmp_path / "small.toml", "--train-tokens", 400, "-o", small)
    more = ("--from", small, "--grow", "--max-vocab", 12)
    run(*text, *more, "--recipe", tmp_path / "wide.toml", "--train-tokens", 400, "-o", wide)
    run("--resume", wide, "--train-tokens", 800)
    assert elmokit.load(wide).embed("the old cat").layers.shape == (3, 3, 24)
    assert len(LanguageModel.load(wide).vocabulary) == 12 < len(LanguageModel.load(small).vocabulary)
    assert "grown" in (wide / "README.md").read_text(encoding="utf-8")
