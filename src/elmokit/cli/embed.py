"""`elmokit embed`: a text in, a file of vectors out."""

from typing import Any

import click

from elmokit.cli import options
from elmokit.cli.printing import print_json
from elmokit.cli.ray_embedding import embed_by_ray, ray_options


@click.command()
@options.text_input
@options.out_option("File to write: .h5, .npz, .parquet, .arrow, .npy, .csv or .tsv.")
@options.layers_option(
    "all, top, average, mix, a number from 0, or several: 0,2.  [default: mix for --word, --pooling, .npy, "
    ".csv and .tsv, else all]"
)
@options.choice_option(
    "--pooling", "mean max ends sif whitened", "One vector a sentence.  [default for .npy: whitened, or mean]"
)
@click.option("--word", help="Only the uses of this word, a row for each.")
@options.match_case_option
@options.words_option
@options.choice_option("--dtype", "float32 float16", "Type of the stored numbers.", "float32")
@options.model_options
@options.choice_option(
    "--precision",
    "float32 int8 bfloat16 auto",
    "Precision of products; auto is the fastest here.  [default: float32]",
)
@click.option("--fast", is_flag=True, help="The same as --precision auto.")
@options.count_option("--batch-tokens", default=8192, description="Tokens of a batch.")
@options.workers_option
@options.resume_option
@ray_options
@click.option("--any-engine", is_flag=True, help="Resume also what another engine (see info) has begun.")
@options.overwrite_option
@click.option("--dry-run", is_flag=True, help="Write nothing: estimate time and size from a sample.")
@options.json_option
@options.quiet_option
def embed(
    source: str,
    out: str,
    model: dict[str, Any],
    batch_tokens: int,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
    ray: dict[str, Any] | None,
    **settings: Any,
) -> None:
    """Write the vectors of each sentence of a text to a file.

    INPUT is a text file, plain or compressed (.gz, .xz, .zst), a sentence a line; - or nothing is standard
    input. The ending of --out decides the format; - prints JSON, a line for each line as it comes. Row k is
    line k, blank lines too; with --word a row is a use of that word, in any case. With --ray --out may be a
    folder, for Parquet files.
    """
    import elmokit
    from elmokit.embed import embed_lines

    precision = _precision(settings.pop("precision"), fast=settings.pop("fast"))
    if ray is not None:
        _refuse("--ray", {"dry_run": dry_run, "out": out == "-"})
        settings |= {"batch_tokens": batch_tokens, "precision": precision, "progress": not quiet}
        return _say(embed_by_ray(source, out, model, ray, **settings), out, as_json=as_json, quiet=quiet)
    how = {name: settings.pop(name) for name in ("workers", "resume", "overwrite", "any_engine")}
    if dry_run or out == "-":
        _refuse("--dry-run" if dry_run else "--out -", how)
    embedder = elmokit.load(**model, precision=precision, batch_tokens=batch_tokens)
    if dry_run:
        estimate = elmokit.estimate_file(embedder, source, out, **settings)
        return print_json(estimate) if as_json else click.echo(f"{out}: {estimate}")
    if out == "-":
        for line in embed_lines(embedder, source, **settings):
            print_json(line)
        return None
    found = elmokit.embed_file(embedder, source, out, **settings, **how, progress=not quiet)
    return _say(found, out, as_json=as_json, quiet=quiet)


def _say(report: Any, out: str, *, as_json: bool, quiet: bool) -> None:
    if as_json:
        print_json(report)
    elif not quiet:
        click.echo(_complete(out) if report is None else f"{out}: {report}", err=True)


def _complete(out: str) -> str:
    """Say that there was nothing to do."""
    from elmokit.vectors import read_vectors

    with read_vectors(out) as written:
        return f"{out} is complete ({len(written):,} rows): nothing to resume; --overwrite makes it again"


def _refuse(choice: str, how: dict[str, Any]) -> None:
    for name, value in how.items():
        if value:
            raise click.UsageError(f"--{name.replace('_', '-')} has no effect with {choice}")


def _precision(precision: str | None, *, fast: bool) -> str:
    options.refuse_together(precision=precision is not None, fast=fast)
    return "auto" if fast else precision or "float32"
