"""What every task must do: train, be interrupted, resume, evaluate, predict, save and load."""

import re
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import elmokit
from elmokit.tasks import TASKS, core, evaluate, find_task, load_task, train
from elmokit.tasks.core.dataset import find_part
from elmokit.tasks.core.task_job import TaskJob
from tests.task_data import INPUTS, WRITERS, quick_settings


@pytest.fixture(scope="module", params=TASKS)
def task(request):
    return request.param


@pytest.fixture(scope="module")
def arguments(task, folders, elmo):
    settings = quick_settings(task, "training.epochs=3", "head.dropout=0.5", "head.rnn_layers=2")
    return {"source": folders[task], "encoder": f"{elmo}+chars", "settings": settings}


@pytest.fixture(scope="module")
def whole(task, arguments, tmp_path_factory):
    """A training that is not interrupted, with its folder."""
    out = tmp_path_factory.mktemp("whole") / "out"
    before = torch.get_rng_state()
    found = train(task, out=out, **arguments)
    assert torch.equal(torch.get_rng_state(), before)  # the caller's random numbers are left alone
    return found, out


def interrupt_at(monkeypatch, step, fault=None):
    """Press Ctrl-C, or raise `fault`, in a step."""
    compute = TaskJob.compute

    def interrupted(job, at):
        if at == step:
            if fault is not None:
                raise fault
            signal.raise_signal(signal.SIGINT)
        return compute(job, at)

    monkeypatch.setattr(TaskJob, "compute", interrupted)


def assert_same_weights(one, other):
    ours, theirs = one.state_dict(), other.state_dict()
    assert ours.keys() == theirs.keys()
    for name in ours:
        torch.testing.assert_close(ours[name], theirs[name], rtol=0, atol=0)


def numbers(history):
    return [{name: value for name, value in entry.items() if "seconds" not in name} for entry in history]


def test_every_task_has_tiny_data():
    assert WRITERS.keys() == TASKS.keys() == INPUTS.keys()


def test_the_core_knows_no_task_by_name():
    for path in Path(core.__file__).parent.glob("*.py"):
        words = set(re.findall(r"\w+", path.read_text(encoding="utf-8")))
        assert not words & TASKS.keys(), path


@pytest.mark.parametrize("fault", [None, RuntimeError("as if killed")], ids=["Ctrl-C", "killed"])
@pytest.mark.parametrize("step", [1, 4, 5])  # an epoch has three steps
def test_interrupted_and_resumed_as_if_nothing_had_been(
    task, arguments, whole, tmp_path, monkeypatch, step, fault
):
    out = tmp_path / "out"
    with monkeypatch.context() as patched:
        interrupt_at(patched, step, fault)
        with pytest.raises(KeyboardInterrupt if fault is None else RuntimeError) as stopped:
            train(task, out=out, **arguments)
    if fault is None:
        assert f"interrupted after {(step + 1) // 3} epochs; " in str(stopped.value)
        assert "the same call with resume=True continues" in str(stopped.value)
        assert ("holds the best model so far" in str(stopped.value)) == (step > 1)
        if step > 1:
            load_task(out).predict(INPUTS[task][:1])
    with pytest.raises(elmokit.DataError, match=r"is not empty; .* resume=True or overwrite=True"):
        train(task, out=out, **arguments)
    resumed = train(task, out=out, resume=True, **arguments)
    assert numbers(resumed.history) == numbers(whole[0].history)
    assert_same_weights(resumed.model, whole[0].model)
    with pytest.raises(elmokit.DataError, match="holds a finished training"):
        train(task, out=out, resume=True, **arguments)


def test_resumed_with_other_settings(task, arguments, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        interrupt_at(patched, 2)
        with pytest.raises(KeyboardInterrupt):
            train(task, out=tmp_path / "out", **arguments)
    changed = arguments | {"settings": arguments["settings"].changed(["head.rnn=17"])}
    with pytest.raises(elmokit.ConfigError, match=r"was started with other settings: .*rnn"):
        train(task, out=tmp_path / "out", resume=True, **changed)


def test_evaluated_predicted_saved_and_loaded(task, arguments, whole, tmp_path):
    trained, out = whole
    model = load_task(out)
    assert type(model) is find_task(task)
    assert not {"checkpoints", "cache"} & {path.name for path in out.iterdir()}
    scores = evaluate(model, find_part(arguments["source"], "dev"), errors=tmp_path / "errors.tsv")
    assert scores.values == pytest.approx(trained.scores.values)
    assert (tmp_path / "errors.tsv").read_text() == (out / "errors.tsv").read_text()
    inputs = INPUTS[task]
    predictions = [one.to_dict() for one in model.predict(inputs)]
    assert [one.to_dict() for one in (next(model.stream([one])) for one in inputs)] == predictions
    assert all(str(one) for one in model.predict(inputs)[:1])
    model.save(tmp_path / "again", self_contained=True)
    again = find_task(task).load(tmp_path / "again")
    assert [one.to_dict() for one in again.predict(inputs)] == predictions
    assert again.task == replace(trained.model.task, settings=model.task.settings)
    assert_same_weights(again, model)
