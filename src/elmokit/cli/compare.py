"""`elmokit compare`: the same task with several encoders."""

from typing import TYPE_CHECKING, Any

import click

from elmokit.cli import options
from elmokit.cli.printing import print_json

if TYPE_CHECKING:
    from elmokit.tasks import MeasuredRun


@click.command()
@options.task_data
@click.option("--encoders", required=True, metavar="SPEC,SPEC,…", help="Such as glove:FILE,en,glove:FILE+en.")
@options.out_option("Folder to write: the runs, a table and a picture.")
@options.count_option("--seeds", default=3, description="Runs of each encoder.")
@options.resume_option
@options.overwrite_option
@options.json_option
@options.quiet_option
def compare(
    task: str, data: str, encoders: str, changes: tuple[str, ...], as_json: bool, quiet: bool, **settings: Any
) -> None:
    """Train the same task with several encoders and compare them.

    Prints score ± standard deviation, size, time and memory. Every run has its own process.
    """
    from elmokit.tasks import compare as compare_encoders
    from elmokit.tasks import comparison_text, task_settings

    def notice(name: str, run: "MeasuredRun") -> None:
        if not quiet:
            click.echo(f"{name}: {100 * run.score:.2f}", err=True)

    specs = [spec.strip() for spec in encoders.split(",")]
    results = compare_encoders(
        task, data, specs, settings=task_settings(task, changes), notice=notice, **settings
    )
    print_json(*results) if as_json else click.echo(comparison_text(results))
