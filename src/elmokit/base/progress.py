"""Show the progress of long work on standard error, if that is a terminal."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Protocol, TypeAlias

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from elmokit.base.decompression import has_packed_ending

Advance: TypeAlias = Callable[[str, int], None]


class StartStep(Protocol):
    """Starts a step of the work, with a bar of its own."""

    def __call__(self, name: str, total: float | None = None) -> Callable[..., None]:
        """Return `advance(amount=1, note="")`, to be called for each part of `total` that is done."""
        ...

    def say(self, message: str) -> None:
        """Print a message above the bars, also where standard error is not a terminal."""
        ...


class _Display:
    def __init__(self, bar: Progress, console: Console) -> None:
        self._bar, self._console = bar, console

    def __call__(self, name: str, total: float | None = None) -> Callable[..., None]:
        task = self._bar.add_task(name, total=total, note="")

        def advance(amount: float = 1, note: str = "") -> None:
            self._bar.update(task, advance=amount, note=note)

        return advance

    def say(self, message: str) -> None:
        # Without a terminal there is no width to wrap it at.
        self._console.print(message, markup=False, soft_wrap=not self._console.is_terminal)


@contextmanager
def progress_display(*, shown: bool) -> Iterator[StartStep]:
    """Show each step as a line with a bar, its time and a note; the bar pulses if the total is unknown."""
    console = Console(stderr=True, quiet=not shown, highlight=False)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    bar = Progress(*columns, console=console, disable=not (shown and console.is_terminal))
    with nullcontext() if bar.disable else bar:  # older versions of rich print a line even if it is disabled
        yield _Display(bar, console)


@contextmanager
def text_progress(source: object, *, shown: bool) -> Iterator[Advance]:
    """Show how far a text has been read (as a share if it is a plain file), and the speed.

    Yields:
        `advance(text, num_tokens)`, to be called for each line or sentence that is done.
    """
    path = Path(source) if isinstance(source, str | Path) else Path("-")
    known = path.is_file() and not has_packed_ending(path)
    began = time.monotonic()
    tokens = 0
    with progress_display(shown=shown) as start:
        advance_bytes = start("", path.stat().st_size if known else None)

        def advance(text: str, num_tokens: int) -> None:
            nonlocal tokens
            tokens += num_tokens
            speed = tokens / (time.monotonic() - began + 1e-9)
            advance_bytes(len(text.encode(errors="replace")) + 1, f"{tokens:,} tokens, {speed:,.0f}/s")

        yield advance
