"""`elmokit predict`: text in, labels out."""

from typing import Any

import click

from elmokit.cli import options
from elmokit.cli.printing import print_json


@click.command()
@options.text_input
@options.task_model_option
@options.device_option
@options.json_option
def predict(source: Any, tokens: bool, split: bool | str, model: str, device: str, as_json: bool) -> None:
    """Label each sentence of a text with a trained model."""
    from elmokit.tasks import load_task

    task_model = load_task(model, device=device)
    language = task_model.tokenizer.language
    for prediction in task_model.stream(
        options.read_input(source, tokens=tokens, split=split, language=language)
    ):
        print_json(prediction) if as_json else click.echo(prediction)
