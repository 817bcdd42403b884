"""`elmokit embed`: a text in, a file of vectors out."""

from typing import Any

import click

from elmokit.cli import options
from elmokit.cli.printing import print_json


@click.command()
@options.text_input
@options.out_option("File to write: .h5 or .hdf5, .npz, .parquet, .arrow; .npy for sentence vectors.")
@options.choice_option("--layers", "all top average mix", "Layers to keep.  [default: all; mix for .npy]")
@options.choice_option("--pooling", "mean max ends", "Tokens to sentence vector (.npy).  [default: mean]")
@options.choice_option("--dtype", "float32 float16", "Type of the stored numbers.", "float32")
@options.model_options
@options.choice_option(
    "--precision", "float32 int8 bfloat16 auto", "Precision of products; auto is the fastest here.", "float32"
)
@click.option("--fast", "precision", flag_value="auto", help="The same as --precision auto.")
@options.count_option("--batch-tokens", default=8192, description="Tokens of a batch.")
@options.workers_option
@options.resume_option
@options.overwrite_option
@options.json_option
@options.quiet_option
def embed(
    source: str,
    out: str,
    model: dict[str, Any],
    precision: str,
    batch_tokens: int,
    as_json: bool,
    quiet: bool,
    **settings: Any,
) -> None:
    """Write the vectors of each sentence of a text to a file.

    INPUT is a text file, plain or compressed (.gz, .xz, .zst), a sentence a line; - or nothing is standard
    input. The ending of --out decides the format. Row k is line k, blank lines too.
    """
    import elmokit
    from elmokit.embed import embed_file

    embedder = elmokit.load(**model, precision=precision, batch_tokens=batch_tokens)
    report = embed_file(embedder, source, out, **settings, progress=not quiet)
    if as_json:
        print_json(report)
    elif report is None and not quiet:
        click.echo(f"{out} is complete: nothing to resume; --overwrite makes it again", err=True)
    elif not quiet:
        click.echo(f"{out}: {report}", err=True)
