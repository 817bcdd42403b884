"""The loop with a small job of its own: a number that is trained to be 3."""

import math

import pytest
import torch

from elmokit.errors import ConfigError, TrainingError
from elmokit.training import Budget, Evaluation, Loop, Plan, Position, Schedule, StepResult, read_metrics


class Number:
    """Minimises (x - 3)² with noise that follows from the step; scores are given beforehand."""

    steps_per_epoch = 5

    def __init__(self, scores=(), bad=()):
        self.x, self._gradient = 0.0, 0.0
        self._scores, self._bad = iter(scores), list(bad)

    def compute(self, step):
        noise = torch.rand((), generator=torch.Generator().manual_seed(step)).item()
        self._gradient = 2 * (self.x - 3) + 0.1 * noise
        loss = (self.x - 3) ** 2
        if self._bad and self._bad[0][0] == step:
            loss = self._bad.pop(0)[1]
        return StepResult(loss, 7, {"loss": loss})

    def update(self, rate):
        self.x -= rate * self._gradient
        return abs(self._gradient)

    def evaluate(self):
        score = next(self._scores, None)
        return None if score is None else Evaluation({"dev": score}, f"dev {score}", score)

    def state_dict(self):
        return {"x": self.x}

    def load_state_dict(self, state):
        self.x = state["x"]


def make(job, folder, said=None, settings=None, **plan):
    plan = Plan(**{"budget": Budget(epochs=6), "schedule": Schedule(peak=0.1), "log_every": 5, **plan})
    say = (lambda _: None) if said is None else said.append
    return Loop(job, folder, plan, settings={"seed": 1} if settings is None else settings, say=say)


def test_a_run_ends_with_its_budget_and_writes_records(tmp_path):
    loop = make(Number(), tmp_path)
    assert loop.run()
    assert (loop.position.step, loop.position.tokens) == (30, 210)
    assert loop.job.x == pytest.approx(3, abs=0.1)
    records = read_metrics(tmp_path)
    assert [record["step"] for record in records] == [5, 10, 15, 20, 25, 30]
    assert records[0]["loss"] > records[-1]["loss"]
    assert {"tokens", "seconds", "learning_rate", "gradient_norm"} <= set(records[0])


@pytest.mark.parametrize("after", [1, 7, 10, 29])
def test_a_stopped_run_continues_to_the_same_numbers(tmp_path, after):
    whole = make(Number(scores=range(6)), tmp_path / "whole", evaluate_every=5)
    (tmp_path / "whole").mkdir()
    (tmp_path / "parts").mkdir()
    whole.run()
    seen = []
    first = make(Number(scores=range(6)), tmp_path / "parts", evaluate_every=5)
    assert not first.run(seen.append, stopped=lambda: len(seen) == after - 1)
    assert first.position.step == after
    again = make(Number(scores=range(after // 5, 6)), tmp_path / "parts", evaluate_every=5)
    assert again.run()
    assert again.job.x == whole.job.x
    timeless = [
        [{**record, "seconds": 0} for record in read_metrics(tmp_path / name)] for name in ("whole", "parts")
    ]
    assert timeless[0] == timeless[1]
    assert again.position.scores == whole.position.scores


def test_a_run_may_be_continued_by_another_engine_and_tells(tmp_path):
    def run(engine, stopped):
        said = []
        plan = Plan(budget=Budget(steps=6), schedule=Schedule(peak=0.1))
        loop = Loop(Number(), tmp_path, plan, settings={}, engine=engine, say=said.append)
        loop.run(stopped=lambda: stopped)
        return loop, said

    assert run("avx2", stopped=True)[1] == []
    loop, said = run("torch", stopped=True)
    assert loop.position.engines == ["avx2", "torch"]
    assert said == ["this run is computed by avx2, then by torch; rounding differs"]
    assert run("torch", stopped=True)[0].position.engines == ["avx2", "torch"]
    old = Position(step=3)  # of a version that did not note engines
    old.continue_with("avx2")
    assert old.engines == ["torch", "avx2"]


def test_early_stopping_and_the_best_checkpoint(tmp_path):
    job = Number(scores=[0.5, 0.7, 0.6, 0.7, 0.9])
    loop = make(job, tmp_path, evaluate_every=5, patience=2)
    assert loop.run()
    assert loop.position.step == 20
    assert loop.position.best_step == 10
    end = job.x
    loop.state.restore(loop.position.best_step)
    assert job.x != end
    assert loop.position.step == 10


def test_scores_that_stagnate_halve_the_learning_rate(tmp_path):
    make(Number(scores=[0.5] * 6), tmp_path, evaluate_every=5, halve_on_plateau=True).run()
    rates = [record["learning_rate"] for record in read_metrics(tmp_path)]
    assert rates == [0.1, 0.1, 0.1, 0.05, 0.05, 0.025]


def test_a_bad_loss_rolls_back_with_half_the_learning_rate(tmp_path):
    said = []
    loop = make(Number(bad=[(12, math.nan)]), tmp_path, said)
    assert loop.run()
    assert said == ["the loss exploded at step 12: back to the checkpoint of step 0, learning rate × 0.5"]
    assert loop.position.rate_factor == 0.5
    assert [record["step"] for record in read_metrics(tmp_path)] == [5, 10, 15, 20, 25, 30]


def test_a_loss_far_above_the_usual_is_bad_only_if_asked_for(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    calm = make(Number(bad=[(12, 1000.0)]), tmp_path / "a")
    calm.run()
    assert calm.position.rollbacks == 0
    strict = make(Number(bad=[(12, 1000.0)]), tmp_path / "b", exploded=20.0)
    strict.run()
    assert strict.position.rollbacks == 1


def test_training_that_keeps_exploding_ends_with_advice(tmp_path):
    loop = make(Number(bad=[(0, math.inf)] * 7), tmp_path)
    with pytest.raises(TrainingError, match=r"exploded again at step 0, after 6 returns.*a smaller"):
        loop.run()


def test_other_settings_are_refused_by_name(tmp_path):
    make(Number(), tmp_path, settings={"head": {"dropout": 0.1}, "data": "a"}).run()
    other = make(Number(), tmp_path, settings={"head": {"dropout": 0.3}, "data": "a"})
    with pytest.raises(ConfigError, match=r"other settings: head.dropout is 0.3, was 0.1"):
        other.run()


def test_a_finished_run_is_left_as_it_is(tmp_path):
    make(Number(), tmp_path).run()
    again = make(Number(), tmp_path)
    assert again.run()
    assert again.position.step == 30
