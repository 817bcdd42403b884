"""`elmokit train`: labelled data in, a model folder out."""

from typing import Any

import click

from elmokit.cli import options
from elmokit.cli.printing import print_json

_TUNE = "Also train the encoder, from this layer up (0: all of it).  [default: frozen]"
# Settings that have an option of their own.
_SETTINGS = {
    "training.seed": "seed",
    "encoder.tune_from": "tune_from",
    "head.multi_label": "multi_label",
}


@click.command()
@options.task_data
@click.option("--encoder", required=True, metavar="SPEC", help="Such as en, glove:FILE+chars+en or bert:DIR.")
@options.out_option("Folder to write: the model and its report.")
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Seed of all random numbers.")
@click.option("--tune-from", type=click.IntRange(min=0), metavar="LAYER", help=_TUNE)
@click.option("--multi-label", flag_value="true", help="A text may have several labels.")
@click.option("--from", "start", type=click.Path(), help="Start from this trained model, with its labels.")
@click.option("--cache", type=click.Path(), help="Folder that keeps the encoder's vectors for other runs.")
@click.option("--self-contained", is_flag=True, help="Save the encoder with the model.")
@options.device_option
@options.resume_option
@options.overwrite_option
@options.json_option
@options.quiet_option
def train(
    task: str, data: str, changes: tuple[str, ...], as_json: bool, quiet: bool, **arguments: Any
) -> None:
    """Train a model of TASK on labelled DATA.

    DATA is a folder with train and dev files, or the training file. The folder --out gets the model and, for
    the dev data, scores.json, errors.tsv and pictures.
    """
    from elmokit.tasks import mixes_text, scores_text, task_settings
    from elmokit.tasks import train as train_task

    given = {setting: arguments.pop(name) for setting, name in _SETTINGS.items()}
    changes += tuple(f"{setting}={value}" for setting, value in given.items() if value is not None)
    found = train_task(task, data, settings=task_settings(task, changes), progress=not quiet, **arguments)
    if as_json:
        scores = found.scores.to_dict()
        print_json(
            {"scores": scores, "history": found.history, "tokens": found.tokens, "seconds": found.seconds}
        )
    elif not quiet:
        tables = (scores_text(found.scores), mixes_text(found.model.inputs.learnt_mixes()))
        click.echo("\n\n".join(filter(None, tables)))
        best = max(found.history, key=lambda entry: entry["dev"])["epoch"]
        epochs = f"the best epoch was {best} of {len(found.history)}; {found.seconds:,.0f} s"
        click.echo(f"\n{arguments['out']}: {epochs}", err=True)
