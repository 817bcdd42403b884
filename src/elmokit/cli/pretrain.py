"""`elmokit pretrain`: raw text in, a model folder out."""

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elmokit.cli import options
from elmokit.cli.printing import print_json, print_table

if TYPE_CHECKING:
    from elmokit.pretraining import MaskedScores, PerplexityChange

_POSITIVE = click.FloatRange(min=0, min_open=True)
_RECIPE: dict[str, options.Decorator] = {
    "batch": click.option("--batch", type=int, help="Rows of text read in parallel, over all processes."),
    "unroll": click.option("--unroll", type=int, help="Tokens of a row in one step."),
    "length": click.option("--length", type=int, help="bert: pieces of a row."),
    "nsp": click.option("--nsp/--no-nsp", default=None, help="bert: predict next sentences.  [default: yes]"),
    "whole_words": click.option("--whole-words", is_flag=True, default=None, help="bert: hide whole words."),
    "order": options.choice_option("--order", "document sentence", "Keep the order, or shuffle sentences."),
    "softmax": options.choice_option("--softmax", "sampled adaptive full", "Kind of softmax."),
    "negatives": click.option("--negatives", type=int, help="Words that a sampled softmax draws."),
    "learning_rate": click.option("--learning-rate", type=float, help="Peak of the learning rate."),
    "dropout": click.option("--dropout", type=float, help="Share of numbers that dropout sets to zero."),
    "seed": click.option("--seed", type=int, help="Seed of all random numbers."),
}


@click.command()
@options.corpus_input
@options.out_option("Folder of the model.", required=False)
@options.choice_option(
    "--architecture",
    "lstm gated-cnn transformer bert",
    "Kind of model: ELMo's LSTMs, an ELMo of other layers, or BERT.  [default: lstm]",
)
@options.choice_option(
    "--size", "tiny mini small medium original", "Shape of the model.  [default: small; mini for bert]"
)
@click.option("--recipe", help="default, characters, adapt, paper, or a file.  [default: by the tokenizer]")
@click.option("--minutes", type=_POSITIVE, help="Train for this long.")
@options.count_option("--train-tokens", description="Train on this many tokens.")
@click.option("--epochs", type=_POSITIVE, help="Train for this many passes over the text.  [default: 1]")
@options.resume_option
@click.option("--from", "start", metavar="MODEL", help="Continue to train this model, on this text.")
@click.option(
    "--grow", is_flag=True, help="With --from: take the recipe's larger shape and a new vocabulary."
)
@click.option("--old-text", type=click.Path(), help="With --from: text of its old domain, to compare.")
@click.option("--teacher", metavar="MODEL", help="Also imitate the layers of this model, for a smaller one.")
@options.together(*_RECIPE.values())
@click.option("--hdf5", is_flag=True, help="Also write it for AllenNLP and bilm-tf.  [default with paper]")
@options.device_option
@options.workers_option
@options.json_option
@options.quiet_option
def pretrain(
    sources: tuple[str, ...],
    corpus: dict[str, Any],
    out: str | None,
    recipe: str | None,
    train_tokens: int | None,
    hdf5: bool,
    as_json: bool,
    quiet: bool,
    **settings: Any,
) -> None:
    """Train an ELMo, or a BERT, on your own text.

    INPUT are files or globs of text (see elmokit prepare), or a folder that elmokit prepare wrote. Ctrl-C
    saves; elmokit pretrain --resume FOLDER continues. Under torchrun all processes train one model.
    """
    _refuse_without_start(settings)
    sources, out = _places(sources, out, resume=settings["resume"])
    from elmokit.pretraining import pretrain as run_pretraining

    changed = {name: settings.pop(name) for name in _RECIPE}
    published = recipe == "paper" and settings["architecture"] in (None, "lstm")
    quiet = quiet or os.environ.get("RANK", "0") != "0"  # one of several processes speaks
    changes = run_pretraining(
        sources,
        out=out,
        tokens=train_tokens,
        preparation=corpus,
        recipe=recipe,
        changes={name: value for name, value in changed.items() if value is not None},
        hdf5=hdf5 or published,
        command=shlex.join(["elmokit", *sys.argv[1:]]),
        progress=not quiet,
        **settings,
    )
    if as_json:
        print_json(*changes)
    elif not quiet:
        _print_scores(changes, out)


def _refuse_without_start(settings: dict[str, Any]) -> None:
    for name in ("old_text", "grow"):
        if settings[name] and not (settings["start"] or settings["resume"]):
            raise click.UsageError(f"--{name.replace('_', '-')} has no effect without --from")


def _places(sources: tuple[str, ...], out: str | None, *, resume: bool) -> tuple[tuple[str, ...], str]:
    """Return INPUT and --out; `--resume FOLDER` has only a folder."""
    if resume and out is None and len(sources) == 1:
        return (), sources[0]
    if out is None or not (sources or resume):
        raise click.UsageError(f"Missing {'INPUT…' if out else '-o/--out'}")
    return sources, out


def _print_scores(found: "list[PerplexityChange] | list[MaskedScores]", out: str) -> None:
    """Print what was measured at the end of a run, and how the model is used."""
    from elmokit.pretraining import MaskedScores, PerplexityChange

    _print_changes([one for one in found if isinstance(one, PerplexityChange)])
    masked = [one for one in found if isinstance(one, MaskedScores)]
    if masked:
        rows = [
            (
                *(one.text, f"{one.loss:.3f}", f"{one.accuracy:.1%}", f"{one.pieces:,}"),
                "" if one.next_sentence is None else f"{one.next_sentence:.1%}",
            )
            for one in masked
        ]
        print_table(("text", "masked loss", "found", "pieces", "next sentence"), rows, numbers=4)
    model = shlex.quote(f"bert:{out}" if (Path(out) / "tokenizer.json").exists() else out)
    click.echo(f"{out}: try elmokit fill -m {model} -t 'The [MASK] …'", err=True)


def _print_changes(changes: "list[PerplexityChange]") -> None:
    rows = []
    for change in changes:
        for when, found in (("before", change.before), ("after", change.after)):
            if found is not None:
                numbers = [f"{number:.1f}" for number in (found.forward, found.backward, found.mean)]
                shares = (f"{found.bits_per_character:.3f}", f"{found.oov_rate:.1%}", f"{found.words:,}")
                rows.append((change.text, when, *numbers, *shares))
    columns = ("perplexity of", "", "forward", "backward", "mean", "bits/char", "unknown", "tokens")
    if rows:  # a text of one document has nothing held out
        print_table(columns, rows, numbers=6)
