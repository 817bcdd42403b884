"""`elmokit perplexity`: how well a model predicts a text."""

from typing import Any

import click

from elmokit.cli import options
from elmokit.cli.printing import print_json


@click.command()
@options.text_input
@click.option(
    "--sentences", type=click.Path(), help="Also write the score of each sentence to this file (TSV)."
)
@options.model_options
@options.json_option
@options.quiet_option
def perplexity(source: Any, model: dict[str, Any], as_json: bool, quiet: bool, **settings: Any) -> None:
    """Print how well a model predicts a text.

    Perplexities are those of the full softmax, each sentence from the zero state. They compare models of the
    same vocabulary; bits per character compare any models.
    """
    from elmokit.language_model import LanguageModel, perplexity_file

    found = perplexity_file(LanguageModel.load(**model), source, **settings, progress=not quiet)
    if as_json:
        print_json(found)
        return
    for name in ("forward", "backward", "mean"):
        click.echo(f"{name:<10}{getattr(found, name):>12,.2f}  perplexity")
    click.echo(f"{'bits':<10}{found.bits_per_character:>12.3f}  per character")
    click.echo(f"{'unknown':<10}{found.oov_rate:>12.2%}  of {found.words:,} words")
    click.echo(f"{'sentences':<10}{found.sentences:>12,}")
