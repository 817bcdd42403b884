"""`elmokit graph`: documents in, a graph of entities and relations out."""

from typing import Any

import click

from elmokit.cli import options
from elmokit.cli.printing import print_json


def _renamed(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> dict[str, str]:
    pairs = [one.partition("=") for one in value]
    if not all(old and new for old, _, new in pairs):
        raise click.BadParameter("expected KIND=KIND, such as PER=Peop")
    return {old: new for old, _, new in pairs}


@click.command()
@click.argument("documents", metavar="DOCS…", nargs=-1, required=True, type=click.Path())
@click.option("--relations", required=True, type=click.Path(), help="Folder of a model of relations.")
@click.option("--entities", default="ner-en", type=click.Path(), help="Tagger: a folder or bundled name.")
@options.out_option("Graph to write: .jsonl, .graphml, or a folder for Neo4j.")
@click.option("--rename", multiple=True, metavar="KIND=KIND", callback=_renamed,
              help="The tagger's name of a kind, and that of the relations.")  # fmt: skip
@click.option("--least", type=click.FloatRange(0, 1), default=0.5, help="Probability a relation needs.")
@click.option("--text-column", metavar="NAME", default="text", help="Column or field with the text.")
@options.picture_option("Also draw the graph: .png, .svg or .pdf.")
@options.language_option
@options.device_option
@options.precision_option
@options.overwrite_option
@options.json_option
@options.quiet_option
def graph(
    documents: tuple[str, ...],
    out: str,
    text_column: str,
    picture: str | None,
    as_json: bool,
    quiet: bool,
    **arguments: Any,
) -> None:
    """Make a graph of what documents say: entities and relations.

    DOCS are text files (a document a line), JSON lines (text, id), tables (.csv, .tsv), or folders, in which
    each file is a document. The graph names for each relation the sentences that say it.
    """
    import elmokit

    read = elmokit.read_documents(documents, text_column=text_column)
    made = elmokit.build_graph(read, out=out, progress=not quiet, **arguments)
    if picture is not None:
        made.draw(picture)
    sizes = made.sizes()
    if as_json:
        print_json(sizes)
    elif not quiet:
        counts = ", ".join(f"{count:,} {what}" for what, count in sizes.items())
        click.echo(f"{out}: {counts}", err=True)
