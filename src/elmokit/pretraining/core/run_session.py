"""What surrounds a run: one process writes the folder, all train together, Ctrl-C ends it in good order."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from elmokit.base import StartStep, locked, no_empty_folder, progress_display, write_errors
from elmokit.kernels import find_device, flushed_denormals, keep_freed_memory
from elmokit.pretraining.core.prepared_text import check_places
from elmokit.training import Loop, Processes, status_bar, stop_at_interrupt


@dataclass(frozen=True)
class Session:
    """A run in progress.

    Attributes:
        out: The folder of the model.
        device: That trains.
        processes: That train together.
        display: Where progress is shown.
        stopped: Whether Ctrl-C was pressed.
    """

    out: Path
    device: torch.device
    processes: Processes
    display: StartStep
    stopped: Callable[[], bool]

    @property
    def folder(self) -> Path:
        """The folder of the run, in that of the model."""
        return self.out / "training"

    def train(self, loop: Loop, write_unfinished: Callable[[], object]) -> None:
        """Train to the end of the budget.

        Args:
            loop: Of the run.
            write_unfinished: Writes the model as it is now; called in the leading process if it was stopped.

        Raises:
            KeyboardInterrupt: It was stopped before the end.
        """
        if loop.run(status_bar(self.display, "training"), self.stopped):
            return
        if self.processes.leads:
            write_unfinished()
        self.processes.wait()  # torchrun would end the leading process, when the others have ended
        raise KeyboardInterrupt(
            f"interrupted; {self.out} holds the model as it is now, and "
            f"elmokit.pretrain(out={str(self.out)!r}, resume=True) continues"
        )


@contextmanager
def run_session(
    out: str | Path, device: str, *, resume: bool, progress: bool, old_text: str | Path | None = None
) -> Iterator[Session]:
    """Prepare everything around a run, and check that its folder can be used.

    Raises:
        DataError: It cannot.
        BusyError: Another process is writing it.
    """
    folder, where = Path(out), find_device(device)
    with ExitStack() as stack:
        stack.enter_context(flushed_denormals())
        stack.enter_context(keep_freed_memory())
        processes = stack.enter_context(Processes.joined(where))
        display = stack.enter_context(progress_display(shown=progress and processes.leads))
        stack.enter_context(write_errors(folder, "continue with resume=True"))
        if processes.leads:
            stack.enter_context(no_empty_folder(folder))
            stack.enter_context(locked(folder, parents=True))
            check_places(folder, resume=resume, old_text=old_text)
        stopped = stack.enter_context(stop_at_interrupt(display.say))
        yield Session(folder, where, processes, display, stopped)
