"""`elmokit fit-pooling`: fit the sentence vectors of a model."""

from typing import Any

import click

from elmokit.cli import options
from elmokit.cli.printing import print_json


@click.command("fit-pooling")
@options.text_input
@options.model_options
@click.option("--smoothing", type=float, default=3e-4, help="A word of this share has weight one half.")
@click.option("--whitening", type=float, default=1.0, help="1 whitens wholly, 0 only centres.")
@options.count_option("--most", default=30_000, description="Sentences to fit on.")
@options.json_option
@options.quiet_option
def fit_pooling(source: Any, model: dict[str, Any], as_json: bool, quiet: bool, **settings: Any) -> None:
    """Fit the sentence vectors of a model on text without labels.

    The statistics are written into the folder of --model, where encode, embed --pooling whitened and indexes
    find them; to change a bundled model, make a copy of it with convert. INPUT has a sentence a
    line, or running text with --split.
    """
    import elmokit

    embedder = elmokit.load(**model)
    fitted = elmokit.fit_pooling(embedder, source, folder=model["path"], progress=not quiet, **settings)
    if as_json:
        print_json({"model": model["path"], "dim": fitted.dim, "words": len(fitted.words)})
    elif not quiet:
        click.echo(f"{model['path']}: sentence vectors of {fitted.dim} numbers", err=True)
