"""`elmokit doctor`: what a file or folder is, and what is wrong with it."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from elmokit.doctor import Finding

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
    from elmokit.doctor import diagnose, diagnose_text
    from elmokit.errors import ElmoError
    from elmokit.formats import load_model
    from elmokit.text import read_lines

    findings = diagnose(path, weights)
    _print(findings, as_json=as_json)
    failed = any(finding.level == "error" for finding in findings)
    if text is not None:
        try:
            lowercase = load_model(path, weights).tokenizer.lowercase
        except ElmoError:  # which has been said
            lowercase = False
        of_text = diagnose_text(read_lines(text), cased=not lowercase)
        _print(of_text, as_json=as_json)
        failed |= any(finding.level == "error" for finding in of_text)
    if failed:
        click.get_current_context().exit(1)


def _print(findings: "list[Finding]", *, as_json: bool) -> None:
    for finding in findings:
        if as_json:
            click.echo(json.dumps(asdict(finding), ensure_ascii=False))
        else:
            click.echo(click.style(f"{finding.level:<9}", fg=_COLOURS[finding.level]) + finding.message)
