"""`elmokit compare`: the same task with several encoders."""

from typing import TYPE_CHECKING, Any

import click

from elmokit.cli import options
from elmokit.cli.printing import print_json

if TYPE_CHECKING:
    from elmokit.tasks import MeasuredRun


def _shares(ctx: click.Context, param: click.Parameter, value: str | None) -> list[float] | None:
    """Return shares from percentages between commas."""
    if value is None:
        return None
    try:
        return [float(part) / 100 for part in value.split(",")]
    except ValueError:
        raise click.BadParameter(f"{value!r} must be percentages such as 1,10,100") from None


@click.command()
@options.task_data
@click.option("--encoders", required=True, metavar="SPEC,SPEC,…", help="Such as glove:FILE,en,glove:FILE+en.")
@options.out_option("Folder to write: the runs, a table and a picture.")
@options.count_option("--seeds", default=3, description="Runs of each encoder.")
@click.option(
    "--report", type=click.Path(), help="Also train with parts of the labels; write a report to this folder."
)
@click.option(
    "--shares",
    metavar="PERCENT,…",
    callback=_shares,
    help="With --report: of the labels.  [default: 1,10,100]",
)
@options.resume_option
@options.overwrite_option
@options.json_option
@options.quiet_option
def compare(
    task: str, data: str, encoders: str, changes: tuple[str, ...], report: str | None,
    shares: list[float] | None, as_json: bool, quiet: bool, **settings: Any,
) -> None:  # fmt: skip
    """Train the same task with several encoders and compare them.

    Prints score ± standard deviation, size, time and memory. Every run has its own process. --report writes
    report.md, report.json and pictures: few and many labels, costs, significance.
    """
    from elmokit.tasks import compare as compare_encoders
    from elmokit.tasks import compare_report, comparison_text, task_settings

    def notice(name: str, run: "MeasuredRun") -> None:
        if not quiet:
            click.echo(f"{name}: {100 * run.score:.2f}", err=True)

    specs = [spec.strip() for spec in encoders.split(",")]
    settings |= {"settings": task_settings(task, changes), "notice": notice}
    if report is None:
        if shares is not None:
            raise click.UsageError("--shares has no effect without --report")
        results = compare_encoders(task, data, specs, **settings)
    else:
        settings |= {} if shares is None else {"shares": shares}
        found = compare_report(task, data, specs, report=report, **settings)
        results = found[max(found)]
        if not quiet:
            click.echo(f"{report}/report.md", err=True)
    print_json(*results) if as_json else click.echo(comparison_text(results))
