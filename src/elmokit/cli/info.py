"""`elmokit info`: what a model, or anything else that elmokit writes, is."""

from collections.abc import Iterator
from typing import Any

import click

from elmokit.cli import options
from elmokit.cli.pretrain import pretrain
from elmokit.cli.printing import in_options, print_json, print_table


@click.command()
@click.argument("model", type=click.Path())
@options.weights_option
@options.json_option
def info(model: str, weights: str | None, as_json: bool) -> None:
    """Print what MODEL is: its layers, or how far a run is.

    MODEL may be anything that elmokit writes: a model, a task model, a corpus, an index, vectors, a run.
    """
    from elmokit.doctor import describe

    facts = describe(model, weights)
    if as_json:
        print_json(facts)
        return
    parts, weights_of = facts.pop("weights", []), facts.pop("precisions", {})
    if facts.get("progress") is not None:
        facts["progress"] = f"{facts['progress']:.0%}"
    lines = list(_named(facts))
    width = 2 + max(10, *(len(name) for name, _ in lines))
    for name, shown in lines:
        click.echo(f"{name:<{width}}{in_options(shown, pretrain)}")
    if weights_of:
        precisions = ", ".join(f"{name} ({engine})" for name, engine in weights_of.items())
        click.echo(f"precisions  {precisions}: native to this machine, fastest last, and the engine of each")
    rows = [
        (weight["name"], " × ".join(map(str, weight["shape"])), f"{weight['parameters']:,}")
        for weight in parts
    ]
    if rows:
        total = ("all", "", f"{facts['parameters']:,}")
        print_table(("weights", "shape", "parameters"), [*rows, (), total], numbers=1)


def _named(facts: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield names and values; those of nested data have the names that `--set` has, as in head.rnn."""
    for key, value in facts.items():
        if isinstance(value, dict) and value:
            yield from _named(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", _shown(value)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        nested = any(isinstance(one, list | dict) for one in value)
        return ", ".join(f"({_shown(one)})" if nested else _shown(one) for one in value) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(one)}" for key, one in value.items()) or "none"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
