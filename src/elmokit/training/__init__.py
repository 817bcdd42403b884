"""The one training loop, and what it needs.

job         what is trained: the protocol that biLM pretraining and every task fulfil
plan        how long, how fast, when to evaluate and when to stop
loop        the loop
run_state   checkpoints of a run, roll-back
"""

from elmokit.training.checkpoints import Checkpoints
from elmokit.training.controls import status_bar, stop_at_interrupt
from elmokit.training.job import Evaluation, Job, Position, Status, StepResult
from elmokit.training.loop import Loop
from elmokit.training.metrics import METRICS, read_metrics
from elmokit.training.plan import Budget, Plan, Schedule
from elmokit.training.processes import Processes
from elmokit.training.run_state import RunSummary, summarise_run

__all__ = [
    "METRICS",
    "Budget",
    "Checkpoints",
    "Evaluation",
    "Job",
    "Loop",
    "Plan",
    "Position",
    "Processes",
    "RunSummary",
    "Schedule",
    "Status",
    "StepResult",
    "read_metrics",
    "status_bar",
    "stop_at_interrupt",
    "summarise_run",
]
