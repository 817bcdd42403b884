"""What commands print: JSON for programs, tables for people, messages in the words of the command line."""

import ast
import json
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

import click

# Arguments as a Python caller writes them: overwrite=True, min_count=1, or the bare name min_count.
_VALUE = r"""'[^']*'|"[^"]*"|[\w.+:/-]*\w"""
_ARGUMENT = re.compile(rf"""(?<![\w./'"-])(?:([a-z]\w*)=({_VALUE})|([a-z]+_\w+))""")


def print_json(*values: Any) -> None:
    """Print each value as one line of JSON, with the fields of the Python object."""
    for value in values:
        if hasattr(value, "to_dict"):
            value = value.to_dict()
        elif is_dataclass(value) and not isinstance(value, type):
            value = asdict(value)
        click.echo(json.dumps(value, ensure_ascii=False))


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
    Console().print(table)


def in_options(message: str, *commands: click.Command) -> str:
    """Replace Python arguments in a message by the commands' options; what is not an option stays.

    Example:
        >>> from elmokit.cli.embed import embed
        >>> in_options("exists already; pass overwrite=True, or layers='top'", embed)
        'exists already; pass --overwrite, or --layers top'
    """
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
        value = shlex.quote(ast.literal_eval(value) if value[0] in "'\"" else value)
        return f"{flag} --language {value}" if option.is_flag else f"{flag} {value}"  # split='en'

    return _ARGUMENT.sub(replaced, message)
