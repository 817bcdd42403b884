"""`elmokit doctor`: what a file or folder is, and what is wrong with it."""

import json
from dataclasses import asdict

import click


@click.command()
@click.argument("path")
@click.option("--text", help="A text file, to be checked against the model.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines.")
def doctor(path: str, text: str | None, as_json: bool) -> None:
    """Say what PATH is, whether it is whole, and name the classic mistakes."""
    from elmokit.formats import diagnose, load_model
    from elmokit.text import read_lines
    from elmokit.text_checks import check_text

    findings = diagnose(path)
    if text:
        findings += check_text(read_lines(text), lowercase=load_model(path).tokenizer.lowercase)
    for finding in findings:
        click.echo(json.dumps(asdict(finding)) if as_json else _shown(finding))
    if any(finding.level == "error" for finding in findings):
        click.get_current_context().exit(1)
