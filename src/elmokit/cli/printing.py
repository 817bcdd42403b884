"""What commands print: JSON for programs, tables for people."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

import click


def print_json(value: Any) -> None:
    """Print one line of JSON with the fields of the Python object."""
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
