"""What the training loop asks of the thing that is trained."""

import math
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class StepResult:
    """What one step computed.

    Attributes:
        loss: Decides about roll-back, and is shown.
        tokens: How many the step has read.
        values: Numbers for `metrics.jsonl`, averaged over the steps between two records. A name such as
            "sampled_loss/forward" becomes a table with that key.
    """

    loss: float
    tokens: int
    values: dict[str, float]


@dataclass(frozen=True)
class Evaluation:
    """What was found on held-out data.

    Attributes:
        record: Entries for `metrics.jsonl`.
        text: The same in a few words, for people.
        score: The greater the better; decides about early stopping and which checkpoint is the best. None
            where there is no such decision.
    """

    record: dict[str, Any]
    text: str
    score: float | None = None


class Job(Protocol):
    """Something that can be trained: a model, its data and its optimizer.

    All randomness of a step must follow from its number, so that a resumed run repeats it exactly.
    """

    @property
    def steps_per_epoch(self) -> int:
        """Steps that read the training data once."""

    def compute(self, step: int) -> StepResult:
        """Compute loss and gradients of a step, without changing the model."""

    def update(self, rate: float) -> float:
        """Change the model by the gradients, at this learning rate; return their norm before clipping.

        If the norm is not finite, nothing must have changed.
        """

    def evaluate(self) -> Evaluation | None:
        """Measure the model on held-out data; None if there is none, or it would take too long now."""

    def state_dict(self) -> dict[str, Any]:
        """Return everything that `load_state_dict` needs to continue: tensors and plain data."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state that `state_dict` returned."""


@dataclass
class Position:
    """Where a run stands, apart from the state of its job."""

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    usual_loss: float = math.inf
    rate_factor: float = 1.0  # halved at each roll-back
    rollbacks: int = 0
    evaluations: int = 0
    sums: dict[str, float] = field(default_factory=dict)  # over the steps since the last record
    summed: int = 0  # the number of those steps
    scores: list[float] = field(default_factory=list)  # of all evaluations
    best_step: int | None = None
    engines: list[str] = field(default_factory=list)  # that have computed it, one after the other

    def continue_with(self, engine: str) -> None:
        """Note the engine that computes from here on."""
        if self.step and not self.engines:  # of a version that did not note it
            self.engines = ["torch"]
        if self.engines[-1:] != [engine]:
            self.engines = [*self.engines, engine]


@dataclass(frozen=True)
class Status:
    """What a run reports after each step."""

    position: Position
    progress: float
    loss: float
    tokens_per_second: float
    evaluation: str

    def __str__(self) -> str:
        left = self.position.seconds * (1 / self.progress - 1) / 60 if self.progress else math.nan
        speed = f"{self.position.tokens:,} tokens, {self.tokens_per_second:,.0f}/s"
        parts = (speed, f"loss {self.loss:.3f}", self.evaluation, f"{left:.0f} minutes left")
        return ", ".join(filter(None, parts))
