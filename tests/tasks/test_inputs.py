"""How the layers of encoders reach the task: mixes, places, tuning, gradual unfreezing."""

from dataclasses import asdict

import pytest
import torch

import elmokit
from elmokit.base import settings_from_dict
from elmokit.encoders import CharacterEncoder
from elmokit.tasks import EncoderSettings, Tagger, task_settings
from elmokit.tasks.core.inputs import TaskInputs
from elmokit.tasks.core.rnn import TaskRNN
from elmokit.tasks.core.task_job import make_optimizer, unfreeze
from elmokit.tasks.tagger import TaggerTask
from elmokit.text import TokenizerSpec

SENTENCES = [["the", "cat"], ["a", "bank", "."]]


def use(**changes):
    return EncoderSettings(**{"dropout": 0.0} | changes)


def test_places_each_with_its_own_mix(tiny_encoder):
    """[x; ELMo] at the input, [h; ELMo] at the output; characters are at the input alone."""
    inputs = TaskInputs([CharacterEncoder(), tiny_encoder], use())
    assert (inputs.input_dim, inputs.output_dim) == (128 + 6, 6)
    layers = torch.cat(tiny_encoder.encode(SENTENCES), dim=1)
    part = inputs.parts[1]
    with torch.no_grad():
        part.input_mix.weights.copy_(torch.tensor([0.0, 1.0, 2.0]))
        part.output_mix.gamma.fill_(3.0)
        x, extra = inputs(SENTENCES)
    shares = torch.tensor([0.0, 1.0, 2.0]).softmax(0)
    torch.testing.assert_close(x[:, 128:], torch.einsum("l,ltd->td", shares, layers))
    torch.testing.assert_close(extra, 3 * layers.mean(dim=0))
    given, learnt = inputs.learnt_mixes()
    assert (given.place, learnt.place, learnt.gamma) == ("input", "output", 3.0)
    assert given.shares == pytest.approx(shares.tolist())


@pytest.mark.parametrize(("place", "dims"), [("input", (134, 0)), ("output", (128, 6)), ("both", (134, 6))])
def test_place(tiny_encoder, place, dims):
    inputs = TaskInputs([CharacterEncoder(), tiny_encoder], use(place=place))
    assert tuple(part.shape[1] for part in inputs(SENTENCES)) == dims == (inputs.input_dim, inputs.output_dim)


@pytest.mark.parametrize(("mix", "weights"), [("average", [1 / 3] * 3), ("top", [0, 0, 1])])
def test_fixed_mixes(tiny_encoder, mix, weights):
    inputs = TaskInputs([tiny_encoder], use(mix=mix, place="input"))
    layers = torch.cat(tiny_encoder.encode(SENTENCES), dim=1)
    x, _ = inputs(SENTENCES)
    torch.testing.assert_close(
        x, torch.einsum("l,ltd->td", torch.tensor(weights, dtype=torch.float32), layers)
    )
    assert inputs.learnt_mixes() == []
    assert inputs.regulariser() == 0


def test_the_regulariser_counts_each_learnt_mix(tiny_encoder):
    """Both start at w = 0, so each adds λ · 3 · (1/3)²."""
    inputs = TaskInputs([CharacterEncoder(), tiny_encoder], use(mix_penalty=0.6))
    assert inputs.regulariser().item() == pytest.approx(2 * 0.6 * 3 / 9)


def test_dropout_in_training_alone(tiny_encoder):
    inputs = TaskInputs([tiny_encoder], EncoderSettings(dropout=0.5, place="input"))
    assert (inputs.train()(SENTENCES)[0] == 0).any()
    assert not (inputs.eval()(SENTENCES)[0] == 0).any()


def make_tagger(encoder, *changes):
    task = TaggerTask(task_settings("tagger", ["head.rnn=4", *changes]), tags=("A", "B"))
    return Tagger(task, [encoder], tokenizer=TokenizerSpec(name="whitespace"))


def moving(model, encoder):
    return [all(weight.requires_grad for weight in stage) for stage in encoder.module.stages()]


def test_frozen_encoders_are_no_part_of_the_model(tiny_encoder):
    model = make_tagger(tiny_encoder)
    assert not any("module" in name for name, _ in model.named_parameters())
    assert len(make_optimizer(model).param_groups) == 1


def test_tuning_from_a_layer_up_with_smaller_steps_below(tiny_encoder):
    model = make_tagger(
        tiny_encoder, "encoder.tune_from=1", "encoder.learning_rate=0.1", "encoder.layer_decay=0.5"
    )
    optimizer = make_optimizer(model)
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.05, 0.003]
    unfreeze(model, epoch=1)
    assert moving(model, tiny_encoder) == [False, True, True]
    counted = sum(len(group["params"]) for group in optimizer.param_groups)
    assert counted == len(list(model.parameters())) - len(tiny_encoder.module.stages()[0])


def test_gradual_unfreezing(tiny_encoder):
    model = make_tagger(tiny_encoder, "encoder.tune_from=0", "encoder.gradual=true")
    seen = []
    for epoch in (1, 2, 3, 4):
        unfreeze(model, epoch)
        seen.append(moving(model, tiny_encoder))
    assert seen == [[False, False, True], [False, True, True], [True] * 3, [True] * 3]


@pytest.mark.parametrize("tune_from", [0, 1, 2])
def test_tuning_moves_what_it_should(tiny_encoder, examples, tune_from):
    model = make_tagger(tiny_encoder, f"encoder.tune_from={tune_from}")
    before = [[weight.detach().clone() for weight in stage] for stage in tiny_encoder.module.stages()]
    optimizer = make_optimizer(model)
    unfreeze(model, 1)
    model(examples).vectors.square().sum().backward()
    optimizer.step()
    moved = [
        any(not torch.equal(old, new) for old, new in zip(olds, news, strict=True))
        for olds, news in zip(before, tiny_encoder.module.stages(), strict=True)
    ]
    assert moved == [depth >= tune_from for depth in range(3)]


def test_nothing_at_the_input(tiny_encoder):
    with pytest.raises(elmokit.ConfigError, match="no encoder is left for the input"):
        TaskInputs([tiny_encoder], use(place="output"))


def test_a_linear_head_reads_each_encoder_once(tiny_encoder):
    assert make_tagger(tiny_encoder, "head.rnn=0").rnn.output_dim == 6


def test_settings():
    changed = task_settings("tagger", ["head.rnn = 7", "encoder.tune_from=2", "encoder.mix=top"])
    assert (changed.head.rnn, changed.encoder.tune_from, changed.encoder.mix) == (7, 2, "top")
    assert settings_from_dict(type(changed), asdict(changed), "settings") == changed
    assert changed.changed(["encoder.tune_from=none"]).encoder.tune_from is None
    assert changed.with_seed(5).training.seed == 5


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("head.rn=3", "head: unknown setting 'rn'; did you mean 'rnn'?"),
        ("rnn=3", "settings: unknown setting 'rnn'; known are encoder, head, training"),
        ("head.rnn", "expected NAME=VALUE or GROUP.NAME=VALUE, found 'head.rnn'"),
        ("head.rnn=-1", "rnn must be a whole number from 0 to 100000, found -1"),
        ("head.rnn=many", "rnn must be a whole number from 0 to 100000, found 'many'"),
        ("head.dropout=2", "dropout must be a finite number from 0 to 1, found 2"),
        ("head.pooling=mix", "pooling must be one of attention, max, mean, found 'mix'"),
        ("head.scheme=plain", "scheme must be one of BIO, IOB1, BIOES, BMES, found 'plain'"),
        ("head.crf=False", "crf must be true or false, found 'False'"),
        ("encoder.gradual=off", "gradual must be true or false, found 'off'"),
        ("training.class_weights=1", "class_weights must be true or false, found 1"),
        ("training.weight_decay=abc", "weight_decay must be a finite number of at least 0, found 'abc'"),
        ("encoder.place=top", "place must be one of input, output, both, found 'top'"),
    ],
)
def test_settings_that_cannot_be(assignment, message):
    task = "classifier" if "pooling" in assignment else "tagger"
    with pytest.raises(elmokit.ConfigError) as refused:
        task_settings(task, [assignment])
    assert message in str(refused.value)


def test_dropout_that_the_tokens_of_an_example_share():
    rnn = TaskRNN(20, 0, size=0, layers=1, dropout=0.5).train()
    dropped = rnn(torch.ones(5, 20), None, torch.tensor([1, 2, 2]), groups=torch.tensor([3, 2])).vectors
    assert set(dropped.flatten().tolist()) == {0.0, 2.0}
    for start, end in ((0, 3), (3, 5)):
        assert (dropped[start:end] == dropped[start]).all()
    assert (dropped[0] != dropped[3]).any()


def test_the_input_of_the_rnn_joins_its_output():
    rnn = TaskRNN(4, 2, size=3, layers=1, dropout=0.0, skip=True)
    x, extra = torch.randn(5, 4), torch.randn(5, 2)
    vectors = rnn(x, extra, torch.tensor([2, 3])).vectors
    assert vectors.shape == (5, rnn.output_dim) == (5, 2 * 3 + 4 + 2)
    torch.testing.assert_close(vectors[:, 6:], torch.cat([x, extra], dim=1))
    assert TaskRNN(4, 0, size=0, layers=1, dropout=0.0, skip=True).output_dim == 4  # x is the output already
