"""What a user sees and does while training runs: the progress bar and Ctrl-C."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from elmokit.base import StartStep
from elmokit.training.job import Status


@contextmanager
def stop_at_interrupt(say: Callable[[str], None]) -> Iterator[Callable[[], bool]]:
    """Give a function that tells whether Ctrl-C was pressed; pressed twice, it interrupts at once."""
    asked = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        say("stopping after this step, to save it (Ctrl-C again: at once)")

    if threading.current_thread() is not threading.main_thread():  # only the main thread gets signals
        yield asked.is_set
        return
    before = signal.signal(signal.SIGINT, ask)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)


def status_bar(start: StartStep, name: str) -> Callable[[Status], None]:
    """Return a function that shows each status of a loop in a progress bar."""
    advance, shown = start(name, 1.0), 0.0

    def report(status: Status) -> None:
        nonlocal shown
        advance(status.progress - shown, str(status))
        shown = status.progress

    return report
