"""`elmokit fill`: words for the gaps of a sentence."""

import json

import click


@click.command()
@click.argument("text")
@click.option("--model", default="en", show_default=True, help="A model with its softmax: path or name.")
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="Words for each gap.")
@click.option("--tokens", is_flag=True, help="TEXT is tokens between blanks, to be taken as they are.")
@click.option("--tokenizer", metavar="NAME[:LANG]", help="Use this tokenizer, not the one of the model.")
@click.option("--weights", help="The weights, where they do not lie beside the options.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, a list for each gap.")
def fill(
    text: str,
    model: str,
    top: int,
    tokens: bool,
    tokenizer: str | None,
    weights: str | None,
    as_json: bool,
) -> None:
    """Find the words that fit each [MASK] of TEXT best, seen from both sides.

    The last two columns are a word's probabilities from the left alone and from the right alone.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from elmokit.language_model import LanguageModel

    language_model = LanguageModel.load(model, weights, tokenizer=tokenizer)
    gaps = language_model.fill(text.split() if tokens else text, top=top)
    if as_json:
        shown = [[candidate.to_dict() for candidate in gap] for gap in gaps]
        click.echo(json.dumps(shown, indent=2, ensure_ascii=False))
        return
    for number, gap in enumerate(gaps, start=1):
        table = Table("word", title=Text(f"[MASK] {number}") if len(gaps) > 1 else None)
        for name in ("probability", "from the left", "from the right"):
            table.add_column(name, justify="right")
        for word in gap:
            numbers = (word.probability, word.forward, word.backward)
            table.add_row(Text(word.word), *(f"{number:.4f}" for number in numbers))
        Console().print(table)
