"""`elmokit doctor`: what a file or folder is, and what is wrong with it."""

import json
from dataclasses import asdict

import click

_COLOURS = {"ok": "green", "note": "blue", "warning": "yellow", "error": "red"}


@click.command()
@click.argument("path")
@click.option("--weights", help="The weights, where they do not lie beside the options.")
@click.option("--text", help="A text file that is to be given to the model.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines.")
def doctor(path: str, weights: str | None, text: str | None, as_json: bool) -> None:
    """Say what PATH is, whether it is whole, and what is wrong with it.

    Exits with 1 if there is an error.
    """
    from elmokit.formats import diagnose, diagnose_text
    from elmokit.text import read_lines

    findings = diagnose(path, weights)
    if text is not None:
        findings += diagnose_text(read_lines(text))
    for finding in findings:
        if as_json:
            click.echo(json.dumps(asdict(finding), ensure_ascii=False))
        else:
            click.echo(click.style(f"{finding.level:<9}", fg=_COLOURS[finding.level]) + finding.message)
    if any(finding.level == "error" for finding in findings):
        click.get_current_context().exit(1)
