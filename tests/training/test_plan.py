"""Budget, learning rate, early stopping: all functions of the position of a run."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmokit.errors import ConfigError
from elmokit.training import Budget, Plan, Position, Schedule
from elmokit.training.plan import plateau_factor, rounds_since_best


@pytest.mark.parametrize(
    "given_budget", [{}, {"minutes": 1, "tokens": 5}, {"epochs": 0}, {"tokens": -1}, {"steps": 0}]
)
def test_exactly_one_budget(given_budget):
    with pytest.raises(ConfigError, match="give one positive budget"):
        Budget(**given_budget)


def test_progress_is_the_share_of_the_budget_that_is_used_up():
    at = Position(step=15, tokens=25, seconds=60)
    assert Budget(minutes=2).progress(at, 10) == 0.5
    assert Budget(tokens=100).progress(at, 10) == 0.25
    assert Budget(steps=60).progress(at, 10) == 0.25
    assert Budget(epochs=2).progress(at, 10) == 0.75
    assert Budget(epochs=2).part(0.25).epochs == 0.5


def test_the_learning_rate_rises_stays_and_falls():
    schedule = Schedule(peak=2.0, warmup=4, decay=0.5)
    assert [schedule.rate(step, 0.0) for step in range(5)] == [0.5, 1.0, 1.5, 2.0, 2.0]
    assert schedule.rate(0, 0.05) == 1.0  # half of the longest warm-up, a tenth of the budget
    assert schedule.rate(9, 0.5) == 2.0
    assert schedule.rate(9, 0.75) == pytest.approx(2.0 * (0.01 + 0.99 / 2))
    assert schedule.rate(9, 1.0) == pytest.approx(0.02)
    assert Schedule().rate(9, 0.9) == 1.0


@given(st.lists(st.floats(0.1, 1.0), max_size=12))
def test_the_plateau_is_that_of_torch(scores):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", factor=0.5, patience=1)
    for score in scores:
        scheduler.step(score)
    assert plateau_factor(scores) == optimizer.param_groups[0]["lr"]


def test_the_best_is_the_first_of_equals():
    assert rounds_since_best([]) == 0
    assert rounds_since_best([0.1, 0.5, 0.5]) == 1
    plan = Plan(budget=Budget(epochs=9), patience=2)
    assert not plan.finished(Position(scores=[0.5, 0.4]), 0.1)
    assert plan.finished(Position(scores=[0.5, 0.4, 0.5]), 0.1)


def test_evaluations_by_steps_end_with_one_at_the_end():
    plan = Plan(budget=Budget(steps=25), evaluate_every=10)
    due = [plan.evaluations_due(Position(step=step), step / 25) for step in (9, 10, 20, 24, 25)]
    assert due == [0, 1, 2, 2, 3]
