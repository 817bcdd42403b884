"""The training loop of everything in elmokit that is trained.

    while there is budget:
        compute the loss and the gradients of the next step
        if the loss is bad, return to the last checkpoint with half the learning rate
        update the model
        now and then: write a record, evaluate, write a checkpoint

A job's randomness follows from the number of the step, and a checkpoint holds everything else, so a run that
was killed continues to the same numbers as one that was not.
"""

import math
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from elmokit.training.job import Evaluation, Job, Position, Status, StepResult
from elmokit.training.metrics import Metrics
from elmokit.training.plan import Plan, rounds_since_best
from elmokit.training.processes import Processes
from elmokit.training.run_state import RunState

_CHECKPOINT_SECONDS = 600
_USUAL_OVER = 50  # steps over which the usual loss is averaged


class Loop:
    """A run of training in a folder, which holds its checkpoints and `metrics.jsonl`.

    Args:
        job: What is trained.
        folder: Of the run; training continues from the newest checkpoint there.
        plan: How long, how fast, and when to evaluate.
        settings: Plain data that must be the same when an interrupted run is resumed.
        processes: That train together.
        engine: What computes: an instruction set of the native kernel, or "torch". A run may be continued by
            another; its position, and so its checkpoints, list them all.
        say: Called with messages for people.
    """

    def __init__(
        self,
        job: Job,
        folder: Path,
        plan: Plan,
        *,
        settings: dict[str, Any],
        processes: Processes | None = None,
        engine: str = "torch",
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.job, self._plan, self._say = job, plan, say
        self._processes = processes or Processes()
        self.state = RunState(job, folder, settings, self._processes, engine)
        self._last_evaluation = ""

    @property
    def position(self) -> Position:
        """Where the run stands."""
        return self.state.position

    @property
    def progress(self) -> float:
        """The share of the budget that is used up."""
        return self._plan.budget.progress(self.position, self.job.steps_per_epoch)

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self._plan.finished(self.position, self.progress)

    def run(
        self, report: Callable[[Status], None] = lambda _: None, stopped: Callable[[], bool] = lambda: False
    ) -> bool:
        """Train until finished (True) or until `stopped()` (False); either way leave a checkpoint."""
        self.state.restore()
        if len(self.position.engines) > 1:
            self._say(f"this run is computed by {', then by '.join(self.position.engines)}; rounding differs")
        if self.position.step == 0:
            self.state.save(self.progress)  # if the first loss explodes, there is something to return to
        with ExitStack() as stack:
            metrics = None
            if self._processes.leads:
                metrics = stack.enter_context(closing(Metrics(self.state.folder, self.position.step)))
            self._train(metrics, report, stopped)
        self.state.save(self.progress)
        return self.finished

    def _train(
        self, metrics: Metrics | None, report: Callable[[Status], None], stopped: Callable[[], bool]
    ) -> None:
        began, seconds_before, tokens_before = time.monotonic(), self.position.seconds, self.position.tokens
        stop = 0.0
        while not (stop or self.finished):
            result = self._step()
            elapsed = time.monotonic() - began
            stop, seconds = self._processes.from_leader([float(stopped()), seconds_before + elapsed])
            if result is None:
                self._say(self.state.roll_back())
                if metrics is not None:
                    metrics.rewind(self.position.step)
                continue
            self.position.seconds = seconds
            if self._plan.record_due(self.position, self.progress):
                self._record(metrics)
            if self.state.unsaved_seconds > _CHECKPOINT_SECONDS:
                self.state.save(self.progress)
            speed = (self.position.tokens - tokens_before) / elapsed
            report(Status(self.position, self.progress, result.loss, speed, self._last_evaluation))

    def _step(self) -> StepResult | None:
        """Train one step; return None if it went wrong, and then nothing was changed."""
        at = self.position
        result = self.job.compute(at.step)
        if not result.loss < at.usual_loss + self._plan.exploded:  # also if the loss is not a number
            return None
        norm = self.job.update(self._plan.rate(at, self.progress))
        if not math.isfinite(norm):
            return None
        usual = result.loss if math.isinf(at.usual_loss) else at.usual_loss
        at.usual_loss = usual + (result.loss - usual) / _USUAL_OVER
        at.step, at.tokens, at.summed = at.step + 1, at.tokens + result.tokens, at.summed + 1
        for name, value in {"gradient_norm": norm, **result.values}.items():
            at.sums[name] = at.sums.get(name, 0.0) + value
        return result

    def _record(self, metrics: Metrics | None) -> None:
        """Write the means over the steps since the last record; evaluate first if that is due."""
        at = self.position
        record: dict[str, Any] = {"step": at.step, "tokens": at.tokens, "seconds": round(at.seconds, 1)}
        record["learning_rate"] = self._plan.rate(at, self.progress)
        for name, total in at.sums.items():
            table, _, key = name.rpartition("/")
            (record.setdefault(table, {}) if table else record)[key] = total / at.summed
        at.sums, at.summed = {}, 0
        found = self._evaluate_if_due()
        if metrics is not None:
            metrics.write({**record, **(found.record if found else {})}, flush=found is not None)
        if found and found.score is not None:
            self.state.save(self.progress)

    def _evaluate_if_due(self) -> Evaluation | None:
        at, due = self.position, self._plan.evaluations_due(self.position, self.progress)
        if due <= at.evaluations:
            return None
        at.evaluations = due
        found = self.job.evaluate()
        if found is not None:
            self._last_evaluation = found.text
            self._say(f"step {at.step}: {found.text}")
        if found is not None and found.score is not None:
            at.scores.append(found.score)
            at.best_step = at.best_step if rounds_since_best(at.scores) else at.step
        return found
