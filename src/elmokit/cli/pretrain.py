"""`elmokit pretrain`: raw text in, a model folder out."""

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elmokit.cli.prepare import corpus_options, read_settings, refuse_corpus_options

if TYPE_CHECKING:
    from elmokit.corpus import PrepareSettings
    from elmokit.pretraining import PerplexityChange, Recipe

_SETTINGS = ("batch", "unroll", "order", "softmax", "negatives", "learning_rate", "dropout", "seed")


@click.command()
@click.argument("sources", metavar="CORPUS…", nargs=-1, required=True)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The model's folder.")
@click.option(
    "--size", type=click.Choice(["tiny", "small", "medium", "original"]), help="Its shape.  [small]"
)
@click.option("--recipe", default="default", show_default=True, help="default, paper, or a TOML file.")
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), help="Train that long.")
@click.option("--tokens", type=click.IntRange(min=1), help="Train on that many tokens.")
@click.option("--epochs", type=click.FloatRange(min=0, min_open=True), help="Passes over the text.  [1]")
@click.option("--resume", is_flag=True, help="Go on with a run that was interrupted.")
@click.option("--from", "start", metavar="MODEL", help="Go on training this model, on this text.")
@click.option("--old-text", metavar="FILE", help="With --from: text of its old domain, to see what it loses.")
@click.option("--batch", type=int, help="Rows of text side by side, over all processes.")
@click.option("--unroll", type=int, help="Tokens of a row in one step.")
@click.option("--order", type=click.Choice(["document", "sentence"]), help="Read on, or shuffle sentences.")
@click.option("--softmax", type=click.Choice(["sampled", "adaptive", "full"]))
@click.option("--negatives", type=int, help="Words that a sampled softmax draws.")
@click.option("--learning-rate", type=float, help="Its peak.")
@click.option("--dropout", type=float)
@click.option("--seed", type=int)
@click.option("--hdf5", is_flag=True, help="Also write it as AllenNLP and bilm-tf read it.  [with paper]")
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda, …, or auto.")
@corpus_options
@click.option("--workers", type=click.IntRange(min=1), help="Processes that prepare.  [default: the cores]")
@click.option("--quiet", is_flag=True, help="No progress and no summary.")
def pretrain(
    sources: tuple[str, ...],
    out: Path,
    size: str | None,
    recipe: str,
    minutes: float | None,
    tokens: int | None,
    epochs: float | None,
    resume: bool,
    start: str | None,
    old_text: str | None,
    hdf5: bool,
    device: str,
    workers: int | None,
    quiet: bool,
    **options: Any,  # noqa: ANN401 (those of corpus_options, and settings of the recipe)
) -> None:
    """Train a biLM on your own text.

    CORPUS are files or globs of text (see elmokit prepare), or a folder that elmokit prepare made. Ctrl-C
    saves; the same command with --resume goes on. Under torchrun all processes train one model.
    """
    if old_text is not None and start is None:
        raise click.UsageError("--old-text is for --from")
    from elmokit.pretraining import pretrain as run_pretraining

    quiet = quiet or os.environ.get("RANK", "0") != "0"  # of several processes one speaks
    changes = run_pretraining(
        sources,
        out=out,
        minutes=minutes,
        tokens=tokens,
        epochs=epochs,
        preparation=_corpus_settings(sources, start, options),
        recipe=_recipe(recipe, size, options),
        start=start,
        old_text=old_text,
        resume=resume,
        workers=workers,
        device=device,
        hdf5=hdf5 or recipe == "paper",
        command=shlex.join(["elmokit", *sys.argv[1:]]),
        progress=not quiet,
    )
    if quiet:
        return
    if changes:  # a text of one document has nothing held out
        _print_changes(changes)
    click.echo(f"{out}: try elmokit.load({str(out)!r}), or elmokit fill --model {out} '… [MASK] …'", err=True)


def _corpus_settings(
    sources: tuple[str, ...], start: str | None, options: dict[str, Any]
) -> "PrepareSettings | None":
    """None for a folder that is prepared already; of a model to go on from, its own tokenizer."""
    from elmokit.corpus import is_prepared

    if len(sources) == 1 and is_prepared(sources[0]):
        refuse_corpus_options(options, sources[0])
        return None
    if start is not None:
        from elmokit.formats import load_model

        spec = load_model(start).tokenizer
        options = {**options, "lowercase": options["lowercase"] or spec.lowercase}
        if not options["language"] and not options["tokenizer"]:
            options |= {"tokenizer": spec.name, "language": spec.language}
    return read_settings(options)


def _recipe(name: str, size: str | None, options: dict[str, Any]) -> "Recipe":
    from dataclasses import replace

    from elmokit.pretraining import read_recipe

    changes = {name: options[name] for name in _SETTINGS if options[name] is not None}
    return replace(read_recipe(name, size), **changes)


def _print_changes(changes: "list[PerplexityChange]") -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("text", "", "forward", "backward", "mean", "bits per character", "out of vocabulary")
    for change in changes:
        for when, found in (("before", change.before), ("after", change.after)):
            if found is not None:
                numbers = (found.forward, found.backward, found.mean)
                table.add_row(
                    change.text,
                    when,
                    *(f"{number:.1f}" for number in numbers),
                    f"{found.bits_per_character:.3f}",
                    f"{found.oov_rate:.1%}",
                )
    Console().print(table)
