"""`elmokit predict`: text in, labels out."""

import json

import click


@click.command()
@click.argument("model")
@click.argument("text", default="-")
@click.option("--tokens", is_flag=True, help="Lines are tokens between blanks, to be taken as they are.")
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda, …, or auto.")
def predict(model: str, text: str, tokens: bool, device: str) -> None:
    """Label each line of TEXT (- is standard input) with the MODEL that `elmokit train` wrote.

    Prints a line of JSON for each line: tokens and their places, tags, spans, labels, probabilities.
    """
    from elmokit.tasks import load_task
    from elmokit.text import read_texts

    for prediction in load_task(model, device=device).stream(read_texts(text, tokens=tokens)):
        click.echo(json.dumps(prediction.to_dict(), ensure_ascii=False))
