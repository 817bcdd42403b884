"""`elmokit doctor`: what a file or folder is, and what is wrong with it."""

from typing import TYPE_CHECKING

import click

from elmokit.cli import options
from elmokit.cli.convert import convert
from elmokit.cli.embed import embed
from elmokit.cli.pretrain import pretrain
from elmokit.cli.printing import in_options, print_json

if TYPE_CHECKING:
    from elmokit.doctor import Finding

_COLOURS = {"ok": "green", "note": "blue", "warning": "yellow", "error": "red"}


@click.command()
@click.argument("model", type=click.Path())
@click.argument("source", metavar="[INPUT]", required=False, type=click.Path())
@options.weights_option
@options.json_option
def doctor(model: str, source: str | None, weights: str | None, as_json: bool) -> None:
    """Check the files of MODEL, and a text that it is to read.

    MODEL may be anything that elmokit writes: a model, a task model, a corpus, an index, vectors, a run.
    INPUT is a text file, or - for standard input. The exit code is 1 if an error was found.
    """
    from elmokit.doctor import diagnose, diagnose_text, is_cased, scripts_of
    from elmokit.text import read_lines

    findings = diagnose(model, weights)
    _print(findings, as_json=as_json)
    if source is not None:
        scripts = scripts_of(model, weights)
        found = diagnose_text(read_lines(source), cased=is_cased(model, weights), known=scripts)
        _print(found, as_json=as_json)
        findings += found
    if any(finding.level == "error" for finding in findings):
        click.get_current_context().exit(1)


def _print(findings: "list[Finding]", *, as_json: bool) -> None:
    for finding in findings:
        if as_json:
            print_json(finding)
        else:
            level = click.style(f"{finding.level:<9}", fg=_COLOURS[finding.level])
            click.echo(level + in_options(finding.message, embed, convert, pretrain))
