"""`elmokit score`: how likely a sentence is, and which of its words are surprising."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from elmokit.language_model import SentenceScore


@click.command()
@click.argument("text", metavar="TEXT|FILE")
@click.option("--model", default="en", show_default=True, help="A model with its softmax: path or name.")
@click.option("--mark", type=click.IntRange(min=0), default=3, show_default=True, help="Words to mark.")
@click.option("--tokens", is_flag=True, help="Sentences are tokens between blanks, taken as they are.")
@click.option("--tokenizer", metavar="NAME[:LANG]", help="Use this tokenizer, not the one of the model.")
@click.option("--weights", help="The weights, where they do not lie beside the options.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines.")
def score(
    text: str,
    model: str,
    mark: int,
    tokens: bool,
    tokenizer: str | None,
    weights: str | None,
    as_json: bool,
) -> None:
    """Print how likely a sentence is, word by word; or each sentence of FILE, a line each (- is stdin).

    Numbers are natural logarithms of probabilities, read from the left and from the right. The most
    surprising words are marked with *; a word out of vocabulary, with ?, is scored as any such word.
    """
    from elmokit.language_model import LanguageModel
    from elmokit.text import is_file, read_texts

    from_file = text == "-" or is_file(text)
    language_model = LanguageModel.load(model, weights, tokenizer=tokenizer)
    if not from_file and not text.strip().count(" ") and Path(text).suffix:
        click.echo(f"no file is named {text}: it is scored as a sentence", err=True)
    one = text.split() if tokens else text
    for found in language_model.stream(read_texts(text, tokens=tokens) if from_file else [one]):
        if as_json:
            click.echo(json.dumps(found.to_dict(), ensure_ascii=False))
        elif from_file:
            click.echo(f"{found.total:10.2f} {found.perplexity:10.1f}  {_marked(found, mark)}")
        else:
            _print_words(found, mark)


def _marked(found: "SentenceScore", mark: int) -> str:
    surprising = found.most_surprising(mark)
    return " ".join(
        click.style(f"*{token}", fg="red", bold=True) if at in surprising else token
        for at, token in enumerate(found.tokens)
    )


def _print_words(found: "SentenceScore", mark: int) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("", "word")
    for name in ("from the left", "from the right"):
        table.add_column(name, justify="right")
    surprising = found.most_surprising(mark)
    rows = zip(found.tokens, found.known, found.forward, found.backward, strict=True)
    for at, (token, known, forward, backward) in enumerate(rows):
        marks = ("*" if at in surprising else "") + ("" if known else "?")
        word = Text(token, style="bold red" if at in surprising else "")
        table.add_row(marks, word, f"{forward:.2f}", f"{backward:.2f}")
    table.add_section()
    table.add_row("", "(its end)", f"{found.end:.2f}", f"{found.begin:.2f}")
    table.add_row("", "sentence", f"{found.forward_total:.2f}", f"{found.backward_total:.2f}")
    Console().print(table)
    click.echo(
        f"log-probability {found.total:.2f}, perplexity {found.perplexity:.1f} (mean of both directions)"
    )
