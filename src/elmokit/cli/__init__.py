"""The command line: one module for each command, which parses, calls one public function and prints.

Only click is imported up front; torch and the rest come in with the command that needs them.
"""

from typing import Any

import click

from elmokit.cli.compare import compare
from elmokit.cli.convert import convert
from elmokit.cli.doctor import doctor
from elmokit.cli.embed import embed
from elmokit.cli.evaluate import evaluate
from elmokit.cli.fill import fill
from elmokit.cli.generate import generate
from elmokit.cli.info import info
from elmokit.cli.neighbours import neighbours
from elmokit.cli.perplexity import perplexity
from elmokit.cli.predict import predict
from elmokit.cli.prepare import prepare
from elmokit.cli.pretrain import pretrain
from elmokit.cli.score import score
from elmokit.cli.train import train
from elmokit.errors import ElmoError

_INTERRUPTED = 130  # 128 + SIGINT, as shells have it


class _Commands(click.Group):
    """Commands that tell what went wrong in one message; exit 1: failed, 2: misuse, 130: Ctrl-C."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401  (as click has it)
        try:
            return super().invoke(ctx)
        except ElmoError as error:
            if ctx.params["verbose"]:
                raise
            click.secho(f"elmokit: {error}", fg="red", err=True)
            ctx.exit(1)
        except KeyboardInterrupt as interrupt:
            click.secho(f"elmokit: {str(interrupt) or 'interrupted'}", fg="yellow", err=True)
            ctx.exit(_INTERRUPTED)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="elmokit")
@click.option("-v", "--verbose", is_flag=True, help="Show where in the code an error comes from.")
def main(verbose: bool) -> None:
    """ELMo for today: context-dependent word vectors, exact and fast on a plain CPU."""


for _command in (
    embed,
    info,
    convert,
    neighbours,
    doctor,
    prepare,
    pretrain,
    perplexity,
    score,
    fill,
    generate,
    train,
    predict,
    evaluate,
    compare,
):
    main.add_command(_command)
