"""When things happen in a run: how long it lasts, its learning rate, evaluations and early stopping.

Everything here is a function of the position of the run, so a resumed run decides as the whole one would.
"""

import math
from dataclasses import dataclass

from elmokit.base import bounded, check_fields
from elmokit.errors import ConfigError
from elmokit.training.job import Position

_MOST_WARMUP = 0.1  # of the budget: a short run would otherwise end before the learning rate has risen
_LAST_SHARE = 0.01  # of the peak learning rate, at the end of the decay
_EVALUATIONS = 20  # over the budget, unless they are asked for by steps


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How long to train. Exactly one of the four is given."""

    minutes: float | None = None
    tokens: int | None = None
    steps: int | None = None
    epochs: float | None = None

    def __post_init__(self) -> None:
        given = [v for v in (self.minutes, self.tokens, self.steps, self.epochs) if v is not None]
        if len(given) != 1 or not 0 < given[0] < math.inf:
            raise ConfigError(f"give one positive budget: minutes, tokens, steps or epochs; found {self}")

    def part(self, share: float) -> "Budget":
        """Return a share of this budget."""
        return Budget(
            minutes=None if self.minutes is None else share * self.minutes,
            tokens=None if self.tokens is None else max(1, round(share * self.tokens)),
            steps=None if self.steps is None else max(1, round(share * self.steps)),
            epochs=None if self.epochs is None else share * self.epochs,
        )

    def progress(self, at: Position, steps_per_epoch: int) -> float:
        """Return the share that is used up: 0 at the start, 1 or more at the end."""
        if self.minutes is not None:
            return at.seconds / (60 * self.minutes)
        if self.tokens is not None:
            return at.tokens / self.tokens
        return at.step / (self.steps or steps_per_epoch * (self.epochs or 1))


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The learning rate over a run: a linear rise, a plateau, and a cosine fall to a hundredth of the peak.

    Attributes:
        peak: The highest learning rate.
        warmup: Steps of the rise, but never more than a tenth of the budget.
        decay: Share of the budget, at its end, over which the learning rate falls. 0: it never falls.
    """

    peak: float = bounded(1.0, above=0)
    warmup: int = bounded(0, least=0)
    decay: float = bounded(0.0, least=0, most=1)

    def __post_init__(self) -> None:
        check_fields(self)

    def rate(self, step: int, progress: float) -> float:
        """Return the learning rate of a step when `progress` (0 … 1) of the budget is used up."""
        warm = max((step + 1) / max(1, self.warmup), progress / _MOST_WARMUP)
        rate = self.peak * min(1.0, warm)
        if self.decay:
            fall = min(1.0, max(0.0, (progress - (1 - self.decay)) / self.decay))
            rate *= _LAST_SHARE + (1 - _LAST_SHARE) * 0.5 * (1 + math.cos(math.pi * fall))
        return rate


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How a run proceeds.

    Attributes:
        budget: How long to train.
        schedule: Of the learning rate.
        log_every: Steps between two records in `metrics.jsonl`.
        evaluate_every: Steps between two evaluations; by default there are 20 over the budget.
        patience: Stop after that many evaluations without a better score.
        halve_on_plateau: Halve the learning rate when scores stagnate.
        exploded: A loss this far above the usual one is bad; one that is not finite always is.
    """

    budget: Budget
    schedule: Schedule = Schedule()
    log_every: int = 10
    evaluate_every: int | None = None
    patience: int | None = None
    halve_on_plateau: bool = False
    exploded: float = math.inf

    def finished(self, at: Position, progress: float) -> bool:
        """Whether the budget is used up, or scores have stopped improving."""
        stale = self.patience is not None and rounds_since_best(at.scores) >= self.patience
        return progress >= 1 or stale

    def rate(self, at: Position, progress: float) -> float:
        """Return the learning rate of the next step."""
        plateau = plateau_factor(at.scores) if self.halve_on_plateau else 1.0
        return at.rate_factor * plateau * self.schedule.rate(at.step, progress)

    def record_due(self, at: Position, progress: float) -> bool:
        """Whether the measurements of the last steps are to be written down now."""
        by_steps = self.evaluate_every is not None
        return at.step % self.log_every == 0 or (
            by_steps and self.evaluations_due(at, progress) > at.evaluations
        )

    def evaluations_due(self, at: Position, progress: float) -> int:
        """Return how many evaluations there should have been so far; one of them is at the end."""
        if self.evaluate_every is None:
            return int(min(1.0, progress) * _EVALUATIONS)
        return at.step // self.evaluate_every + (progress >= 1 and at.step % self.evaluate_every > 0)


def rounds_since_best(scores: list[float]) -> int:
    """Return how many evaluations followed the best one (the first of equals)."""
    return len(scores) - 1 - scores.index(max(scores)) if scores else 0


def plateau_factor(scores: list[float], patience: int = 1) -> float:
    """Return the factor by which scores that stagnate lower the learning rate.

    It is halved whenever more than `patience` evaluations in a row have not beaten the best score by at
    least 0.01 %, as in torch's ReduceLROnPlateau.
    """
    factor, best, bad = 1.0, -math.inf, 0
    for score in scores:
        if score > best * (1 + 1e-4):
            best, bad = score, 0
        else:
            bad += 1
        if bad > patience:
            factor, bad = factor / 2, 0
    return factor
