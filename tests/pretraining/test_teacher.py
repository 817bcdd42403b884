"""A small model that imitates the layers of another."""

from dataclasses import replace

import pytest
import torch
from click.testing import CliRunner

import elmokit
from elmokit.cli import main
from elmokit.formats import ModelBundle
from elmokit.model import BiLM
from elmokit.pretraining.bilm.bilm_job import BiLMJob
from elmokit.pretraining.bilm.softmax_training import SoftmaxTable
from elmokit.pretraining.bilm.teacher import distance
from elmokit.text import TokenizerSpec
from elmokit.training import read_metrics
from tests.small_runs import CONFIG, RECIPE, sentences

LARGE = replace(CONFIG, cell_dim=24, projection_dim=12, num_layers=3)


def make_student(corpus, recipe=RECIPE):
    random = torch.Generator().manual_seed(3)
    teacher = BiLM(LARGE)
    teacher.reset_parameters(random)
    student = BiLM(recipe.model)
    student.reset_parameters(random)
    table = SoftmaxTable(len(corpus.vocabulary), recipe.model.projection_dim)
    table.start(corpus.counts, random)
    bundle = ModelBundle(teacher, TokenizerSpec(name="whitespace"))
    return BiLMJob(student, table, corpus, recipe, teacher=bundle)


def test_distance_is_the_share_of_variance_that_is_not_explained():
    theirs = torch.tensor([[[1.0, 0.0]], [[3.0, 4.0]]])  # (T, B, Q); variance of each number: 1 and 4
    own = torch.tensor([[[-1.0]], [[1.0]]])
    exact = [torch.tensor([[1.0], [2.0]]), torch.tensor([2.0, 2.0])]
    assert distance(exact, [own], [theirs]) == 0
    only_mean = [torch.zeros(2, 1), torch.tensor([2.0, 2.0])]
    assert distance(only_mean, [own], [theirs]) == pytest.approx(1)
    assert distance(only_mean + exact, [own, own], [theirs, theirs]) == pytest.approx(0.5)


def test_the_student_comes_nearer(corpus):
    job = make_student(corpus, replace(RECIPE, imitate=5.0))
    distances = []
    for step in range(150):
        distances.append(job.compute(step).values["teacher_distance"])
        job.update(0.01)
    assert sum(distances[-10:]) < 0.5 * sum(distances[:10])
    assert distances[-1] < 0.5


def test_gradients_of_the_distance_are_those_of_autograd(corpus):
    """The distance falls to first order by the norm of its gradient, if each step follows that alone."""
    job = make_student(corpus, replace(RECIPE, imitate=1e6, clip_norm=1e9))
    for step in range(20):  # the maps are zero at first
        job.compute(step)
        job.update(0.01)
    first = job.compute(0).values["teacher_distance"]
    parameters = [p for p in job._trained.parameters() if p.grad is not None]
    squared = sum(float(p.grad.square().sum()) for p in parameters) / 1e12
    step = 1e-3 * first / squared
    with torch.no_grad():
        for parameter in parameters:
            parameter -= step * parameter.grad / 1e6
    second = job.compute(0).values["teacher_distance"]
    assert (first - second) / step == pytest.approx(squared, rel=0.02)


def test_an_interrupted_run_goes_on_as_if_it_had_not_been(corpus):
    whole = make_student(corpus)
    for step in range(6):
        whole.compute(step)
        whole.update(0.01)
    first = make_student(corpus)
    for step in range(3):
        first.compute(step)
        first.update(0.01)
    second = make_student(corpus)
    second.load_state_dict(first.state_dict())
    for step in range(3, 6):
        second.compute(step)
        second.update(0.01)
    for a, b in zip(whole._trained.parameters(), second._trained.parameters(), strict=True):
        assert torch.equal(a, b)
    assert all(torch.equal(a.cell, b.cell) for a, b in zip(whole._state, second._state, strict=True))
    assert len(whole._state) == 5  # two layers of the student, three of the teacher


def test_types_have_the_vectors_of_the_teachers_encoder(corpus):
    job = make_student(corpus)
    types, teacher = job._windows(0, slice(0, 4)).types, job._teacher
    inputs = teacher.model.config.encoder.inputs(None, None)
    expected = teacher.model.encoder(*inputs(corpus.spellings(types)))
    for _ in range(2):  # computed, and kept
        assert torch.allclose(teacher.encode(types), expected, atol=1e-6)


def test_a_student_from_the_command_line(tmp_path):
    text, model, student = tmp_path / "text.txt", tmp_path / "model", tmp_path / "student"
    text.write_text("\n".join(sentences(60)) + "\n", encoding="utf-8")
    common = ["--language", "en", "--lines", "--min-count", "1", "--batch", "4", "--unroll", "5"]
    for arguments in (
        ["--out", str(model), "--size", "tiny"],
        ["--out", str(student), "--size", "tiny", "--teacher", str(model)],
    ):
        result = CliRunner().invoke(main, ["pretrain", str(text), *common, "--negatives", "8", *arguments])
        assert result.exit_code == 0, result.output
    assert all("teacher_distance" in record for record in read_metrics(student / "training"))
    assert f"imitates the layers of {model}" in (student / "README.md").read_text(encoding="utf-8")
    assert elmokit.load(student).embed("the cat").layers.shape[0] == 3
