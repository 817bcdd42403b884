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
@options.layers_option("Layer to compare: a number from 0, top, average or mix.", "top")
@options.match_case_option
@click.option("--any", "any_word", is_flag=True, help="Compare with all words, not only with WORD.")
@options.words_option
@options.model_options
@options.json_option
def neighbours(word: str, source: Any, model: dict[str, Any], as_json: bool, **settings: Any) -> None:
    """Find the uses of WORD in a text that are like a given one.

    WORD may be in upper or lower case, unless --match-case is given. Each line shows the cosine, the number
    of the line in INPUT, the word as it is spelt there, and the sentence. The use that was asked for goes to
    standard error.
    """
    import elmokit

    asked, nearest = elmokit.nearest_uses(elmokit.load(**model), source, word, **settings)
    place = f"line {asked.line}" if asked.line else "query"
    click.echo(f"{place}: {_marked(asked)}", err=True)
    if not nearest:
        click.echo(f"the text has no other use of {word!r} to compare with", err=True)
    width = max((len(use.word) for use in nearest), default=0)
    for use in nearest:
        shown = f"{use.cosine:6.3f} {use.line:>7}  {use.word:<{width}}  {_marked(use)}"
        print_json(use) if as_json else click.echo(shown)


def _marked(use: "Use") -> str:
    word = click.style(use.word, bold=True, fg="green")
    return f"{use.text[: use.start]}{word}{use.text[use.end :]}"
