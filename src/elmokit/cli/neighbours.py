"""`elmokit neighbours`: where a text uses a word in the same sense."""

from typing import TYPE_CHECKING, Any

import click

from elmokit.cli import options
from elmokit.cli.printing import print_json

if TYPE_CHECKING:
    from elmokit.search import Use


@click.command()
@click.argument("word")
@options.text_input
@click.option("--query", help="A sentence that has WORD.  [default: the first one of INPUT]")
@options.count_option("-k", default=10, description="How many uses to print.")
@click.option("--layer", type=int, default=-1, show_default="the top one", help="Layer to compare, from 0.")
@click.option("--any", "any_word", is_flag=True, help="Compare with all words, not only with WORD.")
@options.model_options
@options.json_option
def neighbours(word: str, source: Any, model: dict[str, Any], as_json: bool, **settings: Any) -> None:
    """Find the uses of WORD in a text that are most like a given one.

    Each line shows the cosine, the number of the line in INPUT, and the sentence; the first line is the use
    that was asked for.
    """
    import elmokit
    from elmokit.search import nearest_uses

    asked, nearest = nearest_uses(elmokit.load(**model), source, word, **settings)
    if not nearest:
        click.echo(f"the text has no other use of {word!r} to compare with", err=True)
    for use in (asked, *nearest):
        print_json(use) if as_json else click.echo(_shown(use))


def _shown(use: "Use") -> str:
    word = click.style(use.text[use.start : use.end], bold=True, fg="green")
    return f"{use.cosine:6.3f} {use.line:>7}  {use.text[: use.start]}{word}{use.text[use.end :]}"
