"""`elmokit info`: what a model is made of."""

import json

import click


@click.command()
@click.argument("model")
@click.option("--weights", help="The weights, where they do not lie beside the options.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def info(model: str, weights: str | None, as_json: bool) -> None:
    """Print what MODEL is made of: layers, shapes, parameters, tokenizer, vocabulary, softmax."""
    from rich.console import Console
    from rich.table import Table

    from elmokit.doctor import model_info
    from elmokit.formats import load_model

    facts = model_info(load_model(model, weights))
    if as_json:
        click.echo(json.dumps(facts, indent=2))
        return
    for key in ("source", "layers", "dim", "vocabulary", "softmax"):
        click.echo(f"{key:<12}{'none' if facts[key] is None else facts[key]}")
    for key in ("tokenizer", "config"):
        click.echo(f"{key:<12}{json.dumps(facts[key])}")
    click.echo(f"precisions  {', '.join(facts['precisions'])} (native to this machine, fastest last)")
    table = Table("weights", "shape")
    table.add_column("parameters", justify="right")
    for weight in facts["weights"]:
        table.add_row(weight["name"], " × ".join(map(str, weight["shape"])), f"{weight['parameters']:,}")
    table.add_section()
    table.add_row("all", "", f"{facts['parameters']:,}")
    Console().print(table)
