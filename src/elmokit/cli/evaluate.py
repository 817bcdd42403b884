"""`elmokit evaluate`: how good a trained model is on labelled data."""

from typing import Any

import click

from elmokit.cli import options
from elmokit.cli.printing import print_json


@click.command()
@click.argument("data", type=click.Path())
@options.task_model_option
@options.format_option
@options.column_options
@click.option("--strict", is_flag=True, help="Count an entity only if all its tags are legal.")
@options.allow_unseen_option
@click.option("--errors", type=click.Path(), help="Also write the wrong predictions to this file (TSV).")
@options.search_option
@options.device_option
@options.precision_option
@options.json_option
def evaluate(
    data: str,
    model: str,
    changes: tuple[str, ...],
    device: str,
    precision: str,
    as_json: bool,
    **settings: Any,
) -> None:
    """Print the scores of a trained model on labelled DATA.

    Scores are in percent; with --json they are between 0 and 1.
    """
    from elmokit.tasks import evaluate as evaluate_model
    from elmokit.tasks import load_task, scores_text

    loaded = load_task(model, device=device, precision=precision, changes=changes)
    scores = evaluate_model(loaded, data, **settings)
    print_json(scores) if as_json else click.echo(scores_text(scores))
