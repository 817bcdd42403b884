"""`elmokit convert`: a model in another format."""

from typing import Any

import click

from elmokit.cli import options

_TYPES = "float32 float16 int8"


@click.command()
@click.argument("model", type=click.Path())
@options.out_option("Folder to write; it must not exist.")
@options.weights_option
@options.choice_option("--format", "native hdf5", "hdf5: for AllenNLP, bilm-tf, simple_elmo.", "native")
@options.choice_option("--precision dtype", _TYPES, "Precision of the stored weights.", "float32")
@options.choice_option("--softmax-precision softmax_dtype", _TYPES, "Of the softmax.  [default: the same]")
def convert(model: str, out: str, weights: str | None, **settings: Any) -> None:
    """Write MODEL in another format or precision to a new folder."""
    from elmokit.formats import load_model, save_model

    save_model(load_model(model, weights), out, **settings)
    click.echo(f"wrote {out}", err=True)
