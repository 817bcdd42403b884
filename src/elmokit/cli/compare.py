"""`elmokit compare`: the same task on several encoders."""

import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from elmokit.tasks import MeasuredRun


@click.command()
@click.argument("data")
@click.option("--task", required=True, type=click.Choice(["tagger", "classifier", "intent"]))
@click.option("--encoders", required=True, metavar="SPEC,SPEC,…", help="Such as glove:FILE,en,glove:FILE+en.")
@click.option("--out", required=True, metavar="FOLDER", help="Where the runs, a table and a picture go.")
@click.option("--seeds", type=click.IntRange(min=1), default=3, show_default=True, help="Trainings of each.")
@click.option(
    "--dev", metavar="FILE", help="The dev file.  [default: DATA's, or a tenth of the training data]"
)
@click.option("--format", help="Of the files.  [default: by their endings]")
@click.option("--tokenizer", metavar="NAME[:LANG]", help="For running text, the same for all encoders.")
@click.option("--set", "changes", multiple=True, metavar="NAME=VALUE", help="A setting, see `elmokit train`.")
@click.option("--allow-unseen", is_flag=True, help="Let labels that are new in dev count as errors.")
@click.option("--resume", is_flag=True, help="Go on with a comparison that was interrupted.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def compare(
    data: str,
    task: str,
    encoders: str,
    out: str,
    seeds: int,
    dev: str | None,
    format: str | None,
    tokenizer: str | None,
    changes: tuple[str, ...],
    allow_unseen: bool,
    resume: bool,
    as_json: bool,
) -> None:
    """Train the same head on each of several encoders; print score ± deviation, size, time and memory.

    Every run has a process of its own.
    """
    from elmokit.tasks import compare as compare_encoders
    from elmokit.tasks import comparison_text, task_settings

    def notice(name: str, run: "MeasuredRun") -> None:
        click.echo(f"{name}: {100 * run.score:.2f}", err=True)

    results = compare_encoders(
        task,
        data,
        [spec.strip() for spec in encoders.split(",")],
        out=out,
        seeds=seeds,
        settings=task_settings(task, changes),
        dev=dev,
        format=format,
        tokenizer=tokenizer,
        allow_unseen=allow_unseen,
        resume=resume,
        notice=notice,
    )
    shown = json.dumps([one.to_dict() for one in results], indent=2) if as_json else comparison_text(results)
    click.echo(shown)
