"""`elmokit index`: documents in, an index out."""

from typing import Any

import click

from elmokit.cli import options
from elmokit.cli.printing import print_json


@click.command()
@click.argument("documents", metavar="DOCS…", nargs=-1, type=click.Path())
@options.out_option("Folder of the index; what is there is added to.")
@click.option("--text-column", metavar="NAME", default="text", help="Column or field with the text.")
@click.option("--delete", multiple=True, metavar="ID", help="Delete this document; may be repeated.")
@click.option("--merge", is_flag=True, help="Merge all segments into one at the end.")
@click.option("--no-words", is_flag=True, help="Do not store vectors of words: smaller, no late interaction.")
@options.count_option("--passage", default=1500, description="Characters of a passage, cut at sentences.")
@click.option("--overlap", type=click.IntRange(0), default=1, help="Sentences that two passages share.")
@options.language_option
@options.model_options
@options.overwrite_option
@options.json_option
@options.quiet_option
def index(
    documents: tuple[str, ...],
    out: str,
    text_column: str,
    delete: tuple[str, ...],
    merge: bool,
    no_words: bool,
    passage: int,
    overlap: int,
    language: str | None,
    model: dict[str, Any],
    overwrite: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Build an index of documents, or change one.

    DOCS are text files (a document a line), JSON lines (text, id, other fields), tables (.csv, .tsv), or
    folders, in which each file is a document. Run it again after an interruption: what is there is skipped.
    """
    import elmokit

    if not (documents or delete or merge):
        raise click.UsageError("there is nothing to do; pass DOCS, --delete or --merge")
    if documents:
        read = elmokit.read_documents(documents, text_column=text_column)
        made: dict[str, Any] = {"words": not no_words, "language": language, "overwrite": overwrite}
        made["passages"] = elmokit.PassageSettings(characters=passage, overlap=overlap)
        made |= {"model": elmokit.load(**model), "progress": not quiet}
        with elmokit.Index.build(read, out, **made) as opened:
            if as_json:
                print_json(opened.report)
            elif not quiet:
                click.echo(f"{out}: {opened.report}", err=True)
    if delete or merge:
        with elmokit.Index.open(out) as opened:
            count = opened.delete(delete)
            opened.merge() if merge else None
        if not quiet:
            click.echo(f"{out}: {count} of {len(delete)} documents deleted", err=True)
