"""Pretraining of biLMs of gated convolutions and of transformers, and what such a model is used for."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import elmokit
from elmokit.errors import ConfigError
from elmokit.pretraining.bilm.parallel_network import ParallelNetwork
from elmokit.pretraining.bilm.recipe import Recipe, read_recipe
from elmokit.training import read_metrics
from tests.small_runs import CONFIG, make_job, make_loop, sentences

KINDS = ("gated-cnn", "transformer")
RECIPE = """
base = "{kind}"
batch = 4
unroll = 12
negatives = 8
learning_rate = 0.01
dropout = 0.0
[model]
cell_dim = 16
projection_dim = 8
heads = 2
width = 3
[model.encoder]
filters = [[1, 8], [2, 8]]
embedding_dim = 4
max_characters = 12
"""


def recipe(kind, **changes):
    model = replace(CONFIG, layers=kind, heads=2)
    return Recipe(**{"model": model, "batch": 4, "unroll": 12, "negatives": 8, "dropout": 0.0} | changes)


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text.txt").write_text("\n".join(sentences(150)) + "\n", encoding="utf-8")
    (tmp_path / "heldout.txt").write_text("\n".join(sentences(15, seed=1)) + "\n", encoding="utf-8")
    for kind in KINDS:
        (tmp_path / f"{kind}.toml").write_text(RECIPE.format(kind=kind), encoding="utf-8")
    return tmp_path


def run(folder, kind, out="model", **more):
    given = {
        "architecture": kind, "tokens": 4800, "recipe": folder / f"{kind}.toml", "workers": 1,
        "preparation": {
            "language": "en", "split_sentences": False, "min_count": 1, "heldout": [folder / "heldout.txt"],
        },
    }  # fmt: skip
    return elmokit.pretrain([folder / "text.txt"], out=folder / out, **given | more)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_the_whole_loss(corpus, kind):
    """With a full softmax, autograd through model and softmax gives the same."""
    chosen = recipe(kind, softmax="full", reset=1.0)
    job = make_job(corpus, chosen)
    network = job._network
    assert isinstance(network, ParallelNetwork)
    window = job._windows(0)
    found = network.step(window, [], 0)
    own = {name: one.grad.clone() for name, one in job.model.named_parameters()}
    job.model.zero_grad()
    lengths = network._lengths(window, 0)
    top = network._top(window, lengths, torch.Generator())
    losses = []
    for direction in range(2):
        targets = torch.from_numpy(window.targets[direction].T.copy()).flatten()
        targets = targets.masked_fill(targets >= job.table.num_words, 2)
        logits = top[direction] @ job.table.weight.detach().T + job.table.bias.detach()
        losses.append(torch.nn.functional.cross_entropy(logits, targets))
    (sum(losses) / 2).backward()
    assert [found.forward, found.backward] == pytest.approx([float(one.detach()) for one in losses], rel=1e-4)
    for name, one in job.model.named_parameters():
        torch.testing.assert_close(own[name], one.grad, rtol=1e-3, atol=1e-6, msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_training_sees_what_embedding_sees(corpus, kind):
    """The top layer of a window is that of `BiLM.forward` over its texts, which start where sentences do."""
    job = make_job(corpus, recipe(kind, reset=1.0))
    window = job._windows(0)
    lengths = job._network._lengths(window, 0)
    assert int(lengths.sum()) == 48
    assert len(lengths) == int((window.starts | (np.arange(12) == 0)[:, None]).sum())
    with torch.no_grad():
        top = job._network._top(window, lengths, torch.Generator())
        spell = corpus.spellings(window.types)
        x = job.model.encoder(*job.model.config.encoder.inputs(corpus.vocabulary, None)(spell))
        forward = x[torch.from_numpy(window.inputs[0].T.copy()).flatten()]
        layers = job.model(forward, lengths)[0]
    torch.testing.assert_close(top[0], layers[-1, :, :8], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_was_stopped_goes_on_to_the_same_losses(corpus, tmp_path, kind):
    chosen = recipe(kind, dropout=0.1)
    whole = make_loop(corpus, tmp_path / "whole", chosen, steps=20)
    assert whole.run()
    stops, seen = make_loop(corpus, tmp_path / "parts", chosen, steps=20), []
    assert not stops.run(seen.append, stopped=lambda: len(seen) == 7)
    again = make_loop(corpus, tmp_path / "parts", chosen, steps=20)
    assert again.run()
    for a, b in zip(whole.job.model.parameters(), again.job.model.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("kind", KINDS)
def test_text_becomes_a_model_that_does_all_that_an_elmo_does(text, kind):
    (found,) = run(text, kind)
    out = text / "model"
    losses = [record["sampled_loss"]["forward"] for record in read_metrics(out / "training")]
    assert losses[-1] < losses[0] - 0.3
    assert found.after.mean < 12  # of 17 words; guessing gives 17
    elmo = elmokit.load(out)
    assert elmo.bundle.model.config.layers == kind
    assert elmo.embed("the old cat sees a river .").layers.shape == (3, 7, 16)
    lm = elmokit.load_lm(out)
    assert lm.perplexity(sentences(15, seed=1)).mean == pytest.approx(found.after.mean, rel=1e-3)
    assert len(lm.fill("the [MASK] cat sees a river .", top=3)[0]) == 3
    words = lm.generate("the old", generator=torch.Generator().manual_seed(1), max_tokens=6)
    assert words[:2] == ["the", "old"]
    layer = {"gated-cnn": "gated convolution", "transformer": "transformer"}[kind]
    assert f"2 {layer} layers" in (out / "README.md").read_text(encoding="utf-8")
    elmokit.pretrain(out=out, resume=True, tokens=5200)  # remembers its architecture


def test_an_elmo_of_other_layers_is_tuned_in_a_task(text):
    run(text, "transformer", tokens=400)
    rows = ["label\ttext", *(f"{n % 2}\tthe {('old', 'young')[n % 2]} cat" for n in range(40))]
    (text / "data.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    changes = ["encoder.tune_from=0", "encoder.gradual=true", "training.least_steps=1", "head.rnn=0"]
    done = elmokit.train(
        "classifier", text / "data.tsv", encoder=str(text / "model"), out=text / "task", epochs=2,
        settings=elmokit.task_settings("classifier", changes),
    )  # fmt: skip
    assert 0 <= done.scores.value <= 1
    assert elmokit.load_task(text / "task").predict("the old cat").label in ("0", "1")


def test_what_does_not_fit(text):
    with pytest.raises(ConfigError, match="teacher is for LSTM layers"):
        run(text, "gated-cnn", teacher="en")
    with pytest.raises(ConfigError, match=r'layers = "transformer", the architecture is gated'):
        run(text, "gated-cnn", recipe=text / "transformer.toml")
    assert read_recipe("transformer", "tiny").model.layers == "transformer"
    assert Recipe.from_dict(read_recipe("gated-cnn").to_dict()) == read_recipe("gated-cnn")
