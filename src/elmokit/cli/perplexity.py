"""`elmokit perplexity`: how well a model predicts a text."""

from typing import TYPE_CHECKING, Any

import click

from elmokit.cli import options
from elmokit.cli.printing import print_json

if TYPE_CHECKING:
    from elmokit.language_model import GapAccuracy, Perplexity


@click.command()
@options.text_input
@click.option(
    "--sentences", type=click.Path(), help="Also write the score of each sentence to this file (TSV)."
)
@click.option("--gaps", is_flag=True, help="Print how often each word is found when it is hidden, instead.")
@options.model_options
@options.json_option
@options.quiet_option
def perplexity(
    source: Any, gaps: bool, model: dict[str, Any], as_json: bool, quiet: bool, **settings: Any
) -> None:
    """Print how well a model predicts a text.

    Perplexities are those of the full softmax, each sentence from the zero state. They compare models of the
    same vocabulary; bits per character compare any models.
    """
    from elmokit.language_model import LanguageModel, gaps_file, perplexity_file

    sentences = settings.pop("sentences")
    options.refuse_together(gaps=gaps, sentences=bool(sentences))
    lm, settings = LanguageModel.load(**model), settings | {"progress": not quiet}
    if gaps:
        _print_gaps(gaps_file(lm, source, **settings), as_json)
    else:
        _print_perplexity(perplexity_file(lm, source, sentences=sentences, **settings), as_json)


def _print_gaps(found: "GapAccuracy", as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    click.echo(f"{found.top1:>8.1%}  of {found.words:,} hidden words come first")
    click.echo(f"{found.top5:>8.1%}  are among the first five")
    click.echo(f"{found.oov_rate:>8.1%}  are out of vocabulary and never found")


def _print_perplexity(found: "Perplexity", as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    for name in ("forward", "backward", "mean"):
        click.echo(f"{name:<10}{getattr(found, name):>12,.2f}  perplexity")
    click.echo(f"{'bits':<10}{found.bits_per_character:>12.3f}  per character")
    click.echo(f"{'unknown':<10}{found.oov_rate:>12.2%}  of {found.words:,} words")
    click.echo(f"{'sentences':<10}{found.sentences:>12,}")
