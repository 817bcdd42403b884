"""`elmokit pretrain`: raw text in, a model folder out."""

import os
import shlex
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from elmokit.cli import options
from elmokit.cli.printing import print_json, print_table

if TYPE_CHECKING:
    from elmokit.pretraining import PerplexityChange

_POSITIVE = click.FloatRange(min=0, min_open=True)
_recipe_options = options.together(
    click.option("--batch", type=int, help="Rows of text read in parallel, over all processes."),
    click.option("--unroll", type=int, help="Tokens of a row in one step."),
    options.choice_option("--order", "document sentence", "Keep the order, or shuffle sentences."),
    options.choice_option("--softmax", "sampled adaptive full", "Kind of softmax."),
    click.option("--negatives", type=int, help="Words that a sampled softmax draws."),
    click.option("--learning-rate", type=float, help="Peak of the learning rate."),
    click.option("--dropout", type=float, help="Share of the numbers that dropout sets to zero."),
    click.option("--seed", type=int, help="Seed of all random numbers."),
)
_RECIPE_NAMES = ("batch", "unroll", "order", "softmax", "negatives", "learning_rate", "dropout", "seed")


@click.command()
@options.corpus_input
@options.out_option("Folder of the model.")
@options.choice_option("--size", "tiny small medium original", "Shape of the model.  [default: small]")
@click.option("--recipe", default="default", help="default, paper, or a TOML file.")
@click.option("--minutes", type=_POSITIVE, help="Train for this long.")
@options.count_option("--train-tokens", description="Train on this many tokens.")
@click.option("--epochs", type=_POSITIVE, help="Train for this many passes over the text.  [default: 1]")
@options.resume_option
@click.option("--from", "start", metavar="MODEL", help="Continue to train this model, on this text.")
@click.option("--old-text", type=click.Path(), help="With --from: text of its old domain, to compare.")
@_recipe_options
@click.option("--hdf5", is_flag=True, help="Also write it for AllenNLP and bilm-tf.  [default with paper]")
@options.device_option
@options.workers_option
@options.json_option
@options.quiet_option
def pretrain(
    sources: tuple[str, ...],
    corpus: dict[str, Any],
    out: str,
    size: str | None,
    recipe: str,
    train_tokens: int | None,
    start: str | None,
    old_text: str | None,
    hdf5: bool,
    as_json: bool,
    quiet: bool,
    **settings: Any,
) -> None:
    """Train an ELMo on your own text.

    INPUT are files or globs of text (see elmokit prepare), or a folder that elmokit prepare wrote. Ctrl-C
    saves; the same command with --resume continues. Under torchrun all processes train one model.
    """
    if old_text is not None and start is None:
        raise click.UsageError("--old-text has no effect without --from")
    from elmokit.pretraining import pretrain as run_pretraining
    from elmokit.pretraining import read_recipe

    given = {name: settings.pop(name) for name in _RECIPE_NAMES}
    changed = {name: value for name, value in given.items() if value is not None}
    quiet = quiet or os.environ.get("RANK", "0") != "0"  # one of several processes speaks
    changes = run_pretraining(
        sources,
        out=out,
        tokens=train_tokens,
        preparation=corpus,
        recipe=replace(read_recipe(recipe, size), **changed),
        start=start,
        old_text=old_text,
        hdf5=hdf5 or recipe == "paper",
        command=shlex.join(["elmokit", *sys.argv[1:]]),
        progress=not quiet,
        **settings,
    )
    if as_json:
        for change in changes:
            print_json(change)
    elif not quiet:
        if changes:  # a text of one document has nothing held out
            _print_changes(changes)
        click.echo(f"{out}: try elmokit fill -m {out} -t 'The [MASK] …'", err=True)


def _print_changes(changes: "list[PerplexityChange]") -> None:
    rows = [
        (
            change.text,
            when,
            *(f"{number:.1f}" for number in (found.forward, found.backward, found.mean)),
            f"{found.bits_per_character:.3f}",
            f"{found.oov_rate:.1%}",
        )
        for change in changes
        for when, found in (("before", change.before), ("after", change.after))
        if found is not None
    ]
    columns = ("text", "", "forward", "backward", "mean", "bits per character", "out of vocabulary")
    print_table(columns, rows, numbers=5)
