"""`elmokit embed`: a text file in, a file of vectors out."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from elmokit.embed import DType, LayerChoice, Pooling


@click.command()
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@click.option(
    "--model",
    default="en",
    show_default=True,
    help="A model: a folder, an options.json, a zip, or a bundled name.",
)
@click.option("--weights", help="The weights, where they do not lie beside the options.")
@click.option(
    "--layers",
    type=click.Choice(["all", "top", "average", "mix"]),
    help="What to keep of the layers.  [default: all; mix for .npy]",
)
@click.option("--dtype", type=click.Choice(["float32", "float16"]), default="float32", show_default=True)
@click.option("--tokens", is_flag=True, help="Lines are tokens between blanks, to be taken as they are.")
@click.option("--split", is_flag=True, help="IN is running text: split it into sentences first.")
@click.option("--language", help="Language for --split.  [default: the model's]")
@click.option("--tokenizer", metavar="NAME[:LANG]", help="Use this tokenizer, not the one of the model.")
@click.option("--pooling", type=click.Choice(["mean", "max", "ends"]), default="mean", show_default=True)
@click.option("--batch-tokens", type=click.IntRange(min=1), default=8192, show_default=True)
@click.option(
    "--precision",
    type=click.Choice(["float32", "int8", "bfloat16", "auto"]),
    default="float32",
    show_default=True,
    help="Of the products; auto takes the fastest that this machine does natively.",
)
@click.option("--fast", "precision", flag_value="auto", help="Short for --precision auto.")
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda, …, or auto.")
@click.option(
    "--workers", type=click.IntRange(min=1), help="Processes that share the model, one thread each."
)
@click.option("--resume", is_flag=True, help="Go on with a run that was interrupted.")
@click.option("--overwrite", is_flag=True, help="Replace OUT, or an interrupted run, that is there.")
@click.option("--quiet", is_flag=True, help="No progress and no summary.")
def embed(
    source: str,
    target: str,
    model: str,
    weights: str | None,
    layers: "LayerChoice | None",
    dtype: "DType",
    tokens: bool,
    split: bool,
    language: str | None,
    tokenizer: str | None,
    pooling: "Pooling",
    batch_tokens: int,
    precision: str,
    device: str,
    workers: int | None,
    resume: bool,
    overwrite: bool,
    quiet: bool,
) -> None:
    """Write the vectors of each line of IN to OUT.

    IN is a text file, plain or compressed (.gz, .xz, .zst), or - for standard input. The ending of OUT
    decides the format: .h5/.hdf5 as AllenNLP wrote it, .npz, .parquet, .arrow; .npy holds one vector a
    sentence. Row k is line k, blank lines too.
    """
    if language and not split:
        raise click.UsageError("--language is for --split")
    import elmokit
    from elmokit.embed import embed_file

    report = embed_file(
        elmokit.load(
            model,
            weights,
            precision=precision,
            device=device,
            tokenizer=tokenizer,
            batch_tokens=batch_tokens,
        ),
        source,
        target,
        layers=layers,
        dtype=dtype,
        tokens=tokens,
        split=split and (language or True),
        pooling=pooling,
        workers=workers,
        resume=resume,
        overwrite=overwrite,
        progress=not quiet,
    )
    if quiet:
        return
    if report is None:
        click.echo(
            f"{target} is there already, and nothing is left of a run to go on with: nothing was done. "
            "(It was not compared with this text and model; --overwrite makes it anew.)",
            err=True,
        )
        return
    click.echo(f"{target}: {report}", err=True)
