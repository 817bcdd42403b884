"""The command line: one module for each command, which parses, calls one public function and prints.

Only click is imported up front; torch and the rest are imported by the command that needs them.
"""

import errno
import logging
import os
import sys
from typing import Any

import click

from elmokit.cli.compare import compare
from elmokit.cli.convert import convert
from elmokit.cli.doctor import doctor
from elmokit.cli.embed import embed
from elmokit.cli.evaluate import evaluate
from elmokit.cli.evaluate_search import evaluate_search
from elmokit.cli.explain import explain
from elmokit.cli.fill import fill
from elmokit.cli.fit_pooling import fit_pooling
from elmokit.cli.generate import generate
from elmokit.cli.graph import graph
from elmokit.cli.index import index
from elmokit.cli.info import info
from elmokit.cli.neighbours import neighbours
from elmokit.cli.perplexity import perplexity
from elmokit.cli.predict import predict
from elmokit.cli.prepare import prepare
from elmokit.cli.pretrain import pretrain
from elmokit.cli.printing import WarningPrinter, in_options
from elmokit.cli.score import score
from elmokit.cli.search import search
from elmokit.cli.serve import serve
from elmokit.cli.train import train
from elmokit.cli.uses import uses
from elmokit.errors import ElmoError

JOBS = {
    "Embed": (embed, neighbours, uses, fit_pooling),
    "Search": (index, search, evaluate_search),
    "Language model": (perplexity, score, fill, generate),
    "Pretrain": (prepare, pretrain),
    "Tasks": (train, predict, evaluate, compare, explain, graph),
    "Serve": (serve,),
    "Models and files": (info, doctor, convert),
}
_INTERRUPTED = 130  # 128 + SIGINT, as in shells


class Commands(click.Group):
    """Commands by job, whose errors are one message; exit 1: failed, 2: misuse, 130: interrupted."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands under the job they are for."""
        width = max(map(len, self.commands))
        for job, commands in JOBS.items():
            with formatter.section(job):
                formatter.write_dl(
                    [(f"{command.name:<{width}}", command.get_short_help_str(100)) for command in commands]
                )

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; print warnings, and what elmokit refuses as one message."""
        printer = WarningPrinter(lambda message: self._in_options(message, ctx))
        logging.getLogger("elmokit").addHandler(printer)
        try:
            return super().invoke(ctx)
        except ElmoError as error:
            if ctx.params["verbose"]:
                raise
            click.secho(f"elmokit: {self._in_options(str(error), ctx)}", fg="red", err=True)
            ctx.exit(1)
        except OSError as error:
            if ctx.params["verbose"] or error.errno == errno.EPIPE:  # a closed pipe is click's business
                raise
            from elmokit.base import plain_reason

            _give_up_output()
            place = f"{error.filename}: " if error.filename else "cannot write the output: "
            click.secho(f"elmokit: {place}{plain_reason(error)}", fg="red", err=True)
            ctx.exit(1)
        except KeyboardInterrupt as interrupt:
            message = self._in_options(str(interrupt) or "interrupted", ctx)
            click.secho(f"elmokit: {message}", fg="yellow", err=True)
            ctx.exit(_INTERRUPTED)
        finally:
            logging.getLogger("elmokit").removeHandler(printer)

    def _in_options(self, message: str, ctx: click.Context) -> str:
        return in_options(message, self.commands[ctx.invoked_subcommand or ""])


def _give_up_output() -> None:
    """Discard what standard output still holds, or Python would try to write it again when it exits."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(package_name="elmokit")
@click.option("-v", "--verbose", is_flag=True, help="Show the traceback of an error.")
def main(verbose: bool) -> None:
    """ELMo for today: context-dependent word vectors, exact and fast on a plain CPU."""


for _commands in JOBS.values():
    for _command in _commands:
        main.add_command(_command)
