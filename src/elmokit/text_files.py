"""A text file on its way through a model: its sentences, and how far it has come."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from elmokit.errors import ConfigError
from elmokit.text import read_lines, sentences_from_lines

Advance: TypeAlias = Callable[[str, int], None]
Input: TypeAlias = str | list[str]  # a sentence, or its tokens

_COMPRESSED = (".gz", ".xz", ".zst")


def split_language(split: bool | str, language: str | None, *, tokens: bool) -> str | None:
    """Whose rules split the text into sentences; None if it is not to be split.

    Args:
        split: whether to split, or a language code.
        language: that of the model, which is taken where `split` is True.
        tokens: whether lines are tokens between blanks, which are sentences already.

    Raises:
        ConfigError: the language is not known, or the lines are not to be split.
    """
    if not split:
        return None
    if tokens:
        raise ConfigError(
            "split is for running text, tokens for text that is split already; choose one of them"
        )
    language = split if isinstance(split, str) else language
    if language is None:
        raise ConfigError(
            "the model does not say its language; pass that of the text, e.g. split='en' (--language en)"
        )
    return language


def read_texts(source: str | Path, *, tokens: bool = False, split: str | None = None) -> Iterator[Input]:
    """The sentences of a file (a line each, or by the rules of the language `split`), or their tokens."""
    lines = read_lines(source)
    if tokens:
        return (line.split() for line in lines)
    return sentences_from_lines(lines, split) if split else lines


@contextmanager
def progress_bar(source: str | Path, *, shown: bool) -> Iterator[Advance]:
    """Show tokens a second and, where the size of the text is known, the time left."""
    console = Console(stderr=True)
    path = Path(source)
    known = path.is_file() and path.suffix not in _COMPRESSED
    columns = [BarColumn(), TaskProgressColumn(), TimeRemainingColumn()] if known else [TimeElapsedColumn()]
    speed = TextColumn("{task.fields[tokens]:,} tokens, {task.fields[speed]:,.0f}/s")
    with Progress(*columns, speed, console=console, disable=not (shown and console.is_terminal)) as bar:
        task = bar.add_task("", total=path.stat().st_size if known else None, tokens=0, speed=0.0)
        began = time.monotonic()
        tokens = 0

        def advance(text: str, num_tokens: int) -> None:
            nonlocal tokens
            tokens += num_tokens
            speed = tokens / (time.monotonic() - began + 1e-9)
            bar.update(task, advance=len(text.encode()) + 1, tokens=tokens, speed=speed)

        yield advance
