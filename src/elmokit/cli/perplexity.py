"""`elmokit perplexity`: how well a model predicts a text."""

import json

import click


@click.command()
@click.argument("model")
@click.argument("text")
@click.option("--sentences", metavar="FILE", help="Write the score of each sentence to FILE, tab-separated.")
@click.option("--tokens", is_flag=True, help="Lines are tokens between blanks, to be taken as they are.")
@click.option("--split", is_flag=True, help="TEXT is running text: split it into sentences first.")
@click.option("--language", help="Language for --split.  [default: the model's]")
@click.option("--tokenizer", metavar="NAME[:LANG]", help="Use this tokenizer, not the one of the model.")
@click.option("--weights", help="The weights, where they do not lie beside the options.")
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda, …, or auto.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--quiet", is_flag=True, help="No progress.")
def perplexity(
    model: str,
    text: str,
    sentences: str | None,
    tokens: bool,
    split: bool,
    language: str | None,
    tokenizer: str | None,
    weights: str | None,
    device: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Print how well MODEL predicts TEXT, a file with a sentence a line (- is standard input).

    Perplexities are those of the full softmax, each sentence from the zero state. They compare models of the
    same vocabulary; bits per character compare models of any.
    """
    if language and not split:
        raise click.UsageError("--language is for --split")
    from elmokit.language_model import LanguageModel, perplexity_file

    found = perplexity_file(
        LanguageModel.load(model, weights, device=device, tokenizer=tokenizer),
        text,
        tokens=tokens,
        split=split and (language or True),
        sentences=sentences,
        progress=not quiet,
    )
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2))
        return
    for name in ("forward", "backward", "mean"):
        click.echo(f"{name:<10}{getattr(found, name):>12,.2f}  perplexity")
    click.echo(f"{'bits':<10}{found.bits_per_character:>12.3f}  per character")
    click.echo(f"{'unknown':<10}{found.oov_rate:>12.2%}  of {found.words:,} words")
    click.echo(f"{'sentences':<10}{found.sentences:>12,}")
