"""`elmokit neighbours`: where a text uses a word alike."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from elmokit.search import Use


@click.command()
@click.argument("model")
@click.argument("text")
@click.argument("word")
@click.option("--query", help="A sentence with WORD.  [default: the first one in TEXT]")
@click.option("-k", type=click.IntRange(min=1), default=10, show_default=True, help="How many uses to print.")
@click.option("--layer", type=int, default=-1, help="Which layer to compare, from 0.  [default: the top one]")
@click.option("--any", "any_word", is_flag=True, help="Compare with all words, not only with WORD.")
@click.option("--weights", help="The weights, where they do not lie beside the options.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines.")
def neighbours(
    model: str,
    text: str,
    word: str,
    query: str | None,
    k: int,
    layer: int,
    any_word: bool,
    weights: str | None,
    as_json: bool,
) -> None:
    """Find the uses of WORD in TEXT most like a given one.

    TEXT is a file, a sentence a line. Each line of the answer has the cosine, the number of the line in TEXT,
    and the sentence; the first is the use that was asked for.
    """
    import elmokit
    from elmokit.search import nearest_uses

    embedder = elmokit.load(model, weights=weights)
    asked, nearest = nearest_uses(embedder, text, word, query=query, k=k, layer=layer, any_word=any_word)
    if not nearest:
        click.echo(f"{text} has no {'word' if any_word else f'use of {word!r}'} to compare with", err=True)
    for use in (asked, *nearest):
        click.echo(json.dumps(asdict(use), ensure_ascii=False) if as_json else _shown(use))


def _shown(use: "Use") -> str:
    word = click.style(use.text[use.start : use.end], bold=True, fg="green")
    return f"{use.cosine:6.3f} {use.line:>7}  {use.text[: use.start]}{word}{use.text[use.end :]}"
