"""`elmokit uses`: all uses of a word in a text, by sense, and their picture."""

from typing import Any

import click

from elmokit.cli import options
from elmokit.cli.printing import print_json, print_table


@click.command()
@click.argument("word")
@options.text_input
@options.picture_option("Draw the uses at each layer: .png, .svg or .pdf.")
@options.count_option("--senses", "num_senses", description="Number of groups.  [default: as many as show]")
@click.option("--sense-column", metavar="NAME", help="Senses from this column of INPUT, which is a table.")
@options.match_case_option
@options.count_option("--most", default=1000, description="Uses to keep.")
@options.words_option
@options.model_options
@options.json_option
def uses(
    word: str, source: Any, picture: str | None, model: dict[str, Any], as_json: bool, **settings: Any
) -> None:
    """Show all uses of WORD in a text, grouped by their vectors.

    WORD may be in upper or lower case, unless --match-case is given. Each line shows the group, the number of
    the line in INPUT, and the word with its context.
    """
    import elmokit
    from elmokit.search import context

    found = elmokit.find_uses(elmokit.load(**model), source, word, **settings)
    if as_json:
        print_json(*found.uses)
    else:
        rows = [(use.sense, use.line, use.word, context(use)) for use in found.uses]
        order = {sense: number for number, sense in enumerate(found.senses)}
        rows.sort(key=lambda row: (order[row[0]], row[1]))
        print_table(("sense", "line", "word", "context"), rows)
    if found.left_out:
        click.echo(f"{found.left_out:,} more uses are left out; --most takes more", err=True)
    if picture is not None:
        found.draw(picture)
        click.echo(f"wrote {picture}", err=True)
