"""`elmokit info`: what a model is made of."""

import json

import click

from elmokit.cli import options
from elmokit.cli.printing import print_json, print_table


@click.command()
@click.argument("model", type=click.Path())
@options.weights_option
@options.json_option
def info(model: str, weights: str | None, as_json: bool) -> None:
    """Print what MODEL is made of: layers, weights, vocabulary."""
    from elmokit.doctor import model_info
    from elmokit.formats import load_model

    facts = model_info(load_model(model, weights))
    if as_json:
        print_json(facts)
        return
    for key in ("source", "layers", "dim", "vocabulary", "softmax"):
        click.echo(f"{key:<12}{'none' if facts[key] is None else facts[key]}")
    for key in ("tokenizer", "config"):
        click.echo(f"{key:<12}{json.dumps(facts[key])}")
    click.echo(f"precisions  {', '.join(facts['precisions'])} (native to this machine, fastest last)")
    rows = [
        (weight["name"], " × ".join(map(str, weight["shape"])), f"{weight['parameters']:,}")
        for weight in facts["weights"]
    ]
    print_table(
        ("weights", "shape", "parameters"), [*rows, (), ("all", "", f"{facts['parameters']:,}")], numbers=1
    )
