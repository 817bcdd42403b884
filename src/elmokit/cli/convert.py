"""`elmokit convert`: a model in another format."""

from typing import Literal

import click


@click.command()
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@click.option("--weights", help="The weights, where they do not lie beside the options.")
@click.option(
    "--format",
    "model_format",
    type=click.Choice(["native", "hdf5"]),
    default="native",
    show_default=True,
    help="hdf5: options.json and weights.hdf5, as AllenNLP, bilm-tf and simple_elmo read them.",
)
@click.option(
    "--precision",
    type=click.Choice(["float32", "float16", "int8"]),
    default="float32",
    show_default=True,
    help="Of the stored weights (native format); int8 makes a quarter of the size.",
)
@click.option(
    "--softmax-precision",
    type=click.Choice(["float32", "float16", "int8"]),
    help="Of the stored softmax, often the larger part.  [that of the weights]",
)
def convert(
    source: str,
    target: str,
    weights: str | None,
    model_format: Literal["native", "hdf5"],
    precision: Literal["float32", "float16", "int8"],
    softmax_precision: Literal["float32", "float16", "int8"] | None,
) -> None:
    """Read the model IN and write it to the new folder OUT."""
    from elmokit.formats import load_model, save_model

    save_model(
        load_model(source, weights),
        target,
        format=model_format,
        dtype=precision,
        softmax_dtype=softmax_precision,
    )
    click.echo(f"wrote {target}", err=True)
