"""`elmokit train`: labelled data in, a model folder out."""

from typing import Any

import click

from elmokit.cli import options
from elmokit.cli.printing import print_json


@click.command()
@options.task_data
@click.option(
    "--encoder", required=True, metavar="SPEC", help="Such as en, glove:FILE+chars+en or bert:FOLDER."
)
@options.out_option("Folder to write: the model and its report.")
@options.count_option("--epochs", description="Train for at most this many epochs.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of all random numbers.")
@click.option(
    "--tune-from",
    type=click.IntRange(min=0),
    metavar="LAYER",
    help="Also train the encoder, from this layer up (0: all of it).  [default: frozen]",
)
@click.option("--multi-label", is_flag=True, help="A text may have several labels.")
@click.option("--cache", type=click.Path(), help="Folder that keeps the encoder's vectors for other runs.")
@click.option("--self-contained", is_flag=True, help="Save the encoder with the model.")
@options.device_option
@options.resume_option
@options.overwrite_option
@options.json_option
@options.quiet_option
def train(
    task: str,
    data: str,
    changes: tuple[str, ...],
    epochs: int | None,
    seed: int | None,
    tune_from: int | None,
    multi_label: bool,
    as_json: bool,
    quiet: bool,
    **settings: Any,
) -> None:
    """Train a tagger, classifier or intent model on labelled DATA.

    DATA is a folder with train and dev files, or the training file. The folder --out gets the model and, for
    the dev data, scores.json, errors.tsv and pictures.
    """
    from elmokit.tasks import mixes_text, scores_text, task_settings
    from elmokit.tasks import train as train_task

    flags = {
        "training.epochs": epochs,
        "training.seed": seed,
        "encoder.tune_from": tune_from,
        "head.multi_label": "true" if multi_label else None,
    }
    given = [f"{name}={value}" for name, value in flags.items() if value is not None]
    found = train_task(
        task, data, settings=task_settings(task, [*changes, *given]), progress=not quiet, **settings
    )
    if as_json:
        print_json({"scores": found.scores.to_dict(), "history": found.history, "seconds": found.seconds})
    elif not quiet:
        tables = (scores_text(found.scores), mixes_text(found.model.inputs.learnt_mixes()))
        click.echo("\n\n".join(filter(None, tables)))
        best = max(found.history, key=lambda entry: entry["dev"])["epoch"]
        click.echo(
            f"\n{settings['out']}: best of {len(found.history)} epochs was {best}; {found.seconds:,.0f} s",
            err=True,
        )
