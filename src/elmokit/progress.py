"""How far long work in steps has come, on standard error, if that is a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn


class StartStep(Protocol):
    """Begins a step of the work."""

    def __call__(self, name: str, total: int | None = None) -> Callable[..., None]:
        """Return what to call with how much of `total` is done, and a note to show beside it."""
        ...


@contextmanager
def progress_display(*, shown: bool) -> Iterator[StartStep]:
    """Show each step as a line with a bar; one that pulses where the total is not known."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    note_column = TextColumn("{task.fields[note]}")
    with Progress(*columns, note_column, console=console, disable=not (shown and console.is_terminal)) as bar:

        def start(name: str, total: int | None = None) -> Callable[..., None]:
            task = bar.add_task(name, total=total, note="")

            def advance(amount: int = 1, note: str = "") -> None:
                bar.update(task, advance=amount, note=note)

            return advance

        yield start
