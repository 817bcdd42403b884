"""What commands print: JSON for programs, tables for people, messages in the words of the command line."""

import ast
import logging
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

import click

# Arguments as a Python caller writes them: overwrite=True, min_count=1, or the bare name min_count.
_VALUE = r"""'[^']*'|"[^"]*"|\[-?\d[-\d, ]*\]|[\w.+:/-]*\w"""
_CALL = re.compile(r"elmokit\.([a-z]+)\(([^()]*)\)")
_ARGUMENT = re.compile(rf"""(?<![\w./'"-])(?:([a-z]\w*)=({_VALUE})|([a-z]+_\w+))""")
_WIDEST = 1000  # columns of a table in a file


def print_json(*values: Any) -> None:
    """Print each value as one line of JSON, with the fields of the Python object."""
    from elmokit.base import to_json

    for value in values:
        if hasattr(value, "to_dict"):
            value = value.to_dict()
        elif is_dataclass(value) and not isinstance(value, type):
            value = asdict(value)
        click.echo(to_json(value))


class WarningPrinter(logging.Handler):
    """Prints what the library warns about, in the words of the command line and each thing once.

    Args:
        translate: Makes options of the Python arguments in a message.
    """

    def __init__(self, translate: Callable[[str], str]) -> None:
        super().__init__(logging.WARNING)
        self._translate = translate
        self._said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message, unless it was printed before."""
        message = self._translate(record.getMessage())
        said = record.msg if record.msg.endswith("(Said once.)") else message
        if said not in self._said:
            self._said.add(said)
            click.secho(f"elmokit: {message}", fg="yellow", err=True)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], *, numbers: int = 0, title: str | None = None
) -> None:
    """Print a table whose last `numbers` columns are right-aligned; an empty row is a line."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title and Text(title), title_justify="left")
    for position, name in enumerate(columns):
        table.add_column(name, justify="right" if position >= len(columns) - numbers else "left")
    for row in rows:
        if row:
            table.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in row))
        else:
            table.add_section()
    # A file has no width that a table must fit into.
    console = Console()
    (console if console.is_terminal else Console(width=_WIDEST)).print(table)


def in_options(message: str, *commands: click.Command) -> str:
    """Replace Python calls and arguments in a message by the commands and their options; others stay.

    Example:
        >>> from elmokit.cli.embed import embed
        >>> in_options("exists already; pass overwrite=True, or layers='top'", embed)
        'exists already; pass --overwrite, or --layers top'
        >>> in_options("layers=[0, 2] has two layers", embed)
        '--layers 0,2 has two layers'
        >>> in_options("unknown setting 'x'; known are batch_tokens, words", embed)
        "unknown setting 'x'; known are batch_tokens, words"
        >>> in_options("try elmokit.embed(out='v.h5', resume=True)", embed)
        'try elmokit embed --out v.h5 --resume'
    """
    named = {command.name: command for command in commands}

    def command_line(match: re.Match[str]) -> str:
        command = named.get(match[1])
        if command is None:
            return match[0]
        return f"elmokit {match[1]} {in_options(match[2], command).replace(', ', ' ')}"

    message = _CALL.sub(command_line, message)
    options = {
        param.name: param
        for command in commands
        for param in command.params
        if isinstance(param, click.Option)
    }

    def replaced(match: re.Match[str]) -> str:
        name, value, bare = match.groups()
        if name == "split_sentences" and "lines" in options:
            return "--split" if value == "True" else "--lines"
        option = options.get(name or bare)
        if option is None or value == "False":
            return match[0]
        flag = max(option.opts, key=len)
        if bare or value == "True":
            return flag
        value = ast.literal_eval(value) if value[0] in "'\"" else value.strip("[]").replace(" ", "")
        value = shlex.quote(value)
        return f"{flag} --language {value}" if option.is_flag else f"{flag} {value}"  # split='en'

    message, known, names = message.partition("; known are ")  # of settings, not options
    return _ARGUMENT.sub(replaced, message) + known + names
