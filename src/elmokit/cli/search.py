"""`elmokit search`: find documents of an index."""

from typing import TYPE_CHECKING, Any

import click

from elmokit.cli import options
from elmokit.cli.printing import print_json

if TYPE_CHECKING:
    from elmokit.search import Hit

_CONTEXT = 240  # characters of a passage around what matched


@click.command()
@click.argument("index", type=click.Path())
@click.argument("query")
@options.count_option("-k", default=10, description="How many documents to print.")
@click.option("--by", metavar="NAMES", help="bm25, dense, late, or several: bm25,dense.  [default: all]")
@click.option("--where", multiple=True, metavar="FIELD=VALUE", help="Only documents with this metadata.")
@options.json_option
def search(index: str, query: str, k: int, by: str | None, where: tuple[str, ...], as_json: bool) -> None:
    """Find the documents of an index that answer a query best.

    Each result has its rank, its name, the passage that was found with the words that matched by their
    meaning, and below it these words with their cosines.
    """
    import elmokit

    with elmokit.Index.open(index) as opened:
        by_names = None if by is None else tuple(by.split(","))
        hits = opened.search(query, k, by=by_names, where=_conditions(where), explain=True)
    if as_json:
        print_json(*hits)
        return
    if not hits:
        click.echo("nothing found", err=True)
    for rank, hit in enumerate(hits, start=1):
        click.echo(f"{rank:>3}. {click.style(hit.id, bold=True)}  {hit.score:.4f}")
        click.echo(f"     {_marked(hit)}")
        pairs = ", ".join(f"{one.word} → {one.found} {one.cosine:.2f}" for one in hit.matches)
        click.echo(click.style(f"     {pairs}", dim=True))


def _conditions(where: tuple[str, ...]) -> dict[str, Any]:
    """Return the conditions; a value that is JSON, such as a number, is read so."""
    import json

    found: dict[str, Any] = {}
    for one in where:
        name, equals, value = one.partition("=")
        if not equals:
            raise click.UsageError(f"expected FIELD=VALUE, found {one!r}")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def _marked(hit: "Hit") -> str:
    """Return the passage around its matches, which are marked, in one line."""
    good = sorted({(one.start, one.end) for one in hit.matches if one.cosine >= 0.5})
    first = max(0, min((start for start, _ in good), default=0) - _CONTEXT // 4)
    shown, at = "…" if first else "", first
    for start, end in good:
        if start >= at and end <= first + _CONTEXT:
            shown += hit.text[at:start] + click.style(hit.text[start:end], bold=True, fg="green")
            at = end
    rest = hit.text[at : first + _CONTEXT]
    return " ".join((shown + rest + ("…" if first + _CONTEXT < len(hit.text) else "")).split())
