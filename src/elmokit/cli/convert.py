"""`elmokit convert`: a model in another format."""

from typing import Any

import click

from elmokit.cli import options

_PRECISIONS = click.Choice(["float32", "float16", "int8"])


@click.command()
@click.argument("model", type=click.Path())
@options.out_option("Folder to write; it must not exist.")
@options.weights_option
@click.option(
    "--format",
    type=click.Choice(["native", "hdf5"]),
    default="native",
    show_default=True,
    help="hdf5: options.json and weights.hdf5, for AllenNLP, bilm-tf and simple_elmo.",
)
@click.option(
    "--precision",
    "dtype",
    type=_PRECISIONS,
    default="float32",
    show_default=True,
    help="Precision of the stored weights (native format); int8 takes a quarter of the space.",
)
@click.option(
    "--softmax-precision",
    "softmax_dtype",
    type=_PRECISIONS,
    help="Precision of the stored softmax.  [default: that of the weights]",
)
def convert(model: str, out: str, weights: str | None, **settings: Any) -> None:
    """Write MODEL in another format or precision to a new folder."""
    from elmokit.formats import load_model, save_model

    save_model(load_model(model, weights), out, **settings)
    click.echo(f"wrote {out}", err=True)
