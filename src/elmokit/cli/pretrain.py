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
_RECIPE: dict[str, options.Decorator] = {
    "batch": click.option("--batch", type=int, help="Rows of text read in parallel, over all processes."),
    "unroll": click.option("--unroll", type=int, help="Tokens of a row in one step."),
    "order": options.choice_option("--order", "document sentence", "Keep the order, or shuffle sentences."),
    "softmax": options.choice_option("--softmax", "sampled adaptive full", "Kind of softmax."),
    "negatives": click.option("--negatives", type=int, help="Words that a sampled softmax draws."),
    "learning_rate": click.option("--learning-rate", type=float, help="Peak of the learning rate."),
    "dropout": click.option("--dropout", type=float, help="Share of numbers that dropout sets to zero."),
    "seed": click.option("--seed", type=int, help="Seed of all random numbers."),
}


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
@options.together(*_RECIPE.values())
@click.option("--hdf5", is_flag=True, help="Also write it for AllenNLP and bilm-tf.  [default with paper]")
@options.device_option
@options.workers_option
@options.json_option
@options.quiet_option
def pretrain(
    sources: tuple[str, ...],
    corpus: dict[str, Any],
    size: str | None,
    recipe: str,
    train_tokens: int | None,
    hdf5: bool,
    as_json: bool,
    quiet: bool,
    **settings: Any,
) -> None:
    """Train an ELMo on your own text.

    INPUT are files or globs of text (see elmokit prepare), or a folder that elmokit prepare wrote. Ctrl-C
    saves; the same command with --resume continues. Under torchrun all processes train one model.
    """
    if settings["old_text"] and not settings["start"]:
        raise click.UsageError("--old-text has no effect without --from")
    from elmokit.pretraining import pretrain as run_pretraining
    from elmokit.pretraining import read_recipe

    changed = {name: settings.pop(name) for name in _RECIPE}
    changed = {name: value for name, value in changed.items() if value is not None}
    quiet = quiet or os.environ.get("RANK", "0") != "0"  # one of several processes speaks
    changes = run_pretraining(
        sources,
        tokens=train_tokens,
        preparation=corpus,
        recipe=replace(read_recipe(recipe, size), **changed),
        hdf5=hdf5 or recipe == "paper",
        command=shlex.join(["elmokit", *sys.argv[1:]]),
        progress=not quiet,
        **settings,
    )
    if as_json:
        print_json(*changes)
    elif not quiet:
        _print_changes(changes)
        click.echo(f"{settings['out']}: try elmokit fill -m {settings['out']} -t 'The [MASK] …'", err=True)


def _print_changes(changes: "list[PerplexityChange]") -> None:
    rows = []
    for change in changes:
        for when, found in (("before", change.before), ("after", change.after)):
            if found is not None:
                numbers = [f"{number:.1f}" for number in (found.forward, found.backward, found.mean)]
                shares = (f"{found.bits_per_character:.3f}", f"{found.oov_rate:.1%}")
                rows.append((change.text, when, *numbers, *shares))
    columns = ("text", "", "forward", "backward", "mean", "bits per character", "out of vocabulary")
    if rows:  # a text of one document has nothing held out
        print_table(columns, rows, numbers=5)
