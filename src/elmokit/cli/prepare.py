"""`elmokit prepare`: raw text in, a corpus for pretraining out."""

from typing import Any

import click

from elmokit.cli import options
from elmokit.cli.printing import print_json, print_table


@click.command()
@options.corpus_input
@options.out_option("Folder to write.")
@options.workers_option
@options.json_option
@options.quiet_option
def prepare(
    sources: tuple[str, ...],
    corpus: dict[str, Any],
    out: str,
    workers: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Prepare raw text for pretraining.

    INPUT are files or globs: text, plain or compressed (.gz, .xz, .zst), in which a blank line ends a
    document; JSON lines (.jsonl) or Parquet, in which each record is a document. The text is cleaned, split
    into sentences, tokenised, counted and written as shards of ids. If it was interrupted, the same command
    resumes it.
    """
    if not sources:
        raise click.UsageError("Missing INPUT…")
    from elmokit.corpus import PrepareSettings, draw_lengths, prepare_corpus, report_rows

    settings = PrepareSettings.from_options(corpus)
    prepared = prepare_corpus(sources, out, settings, workers=workers, progress=not quiet)
    picture = draw_lengths(prepared)
    if as_json:
        print_json(prepared.report)
    elif not quiet:
        rows = [row for group in report_rows(prepared.report) for row in (*group, ())]
        title = f"{prepared.path} ({prepared.fingerprint})"
        print_table(("", "train", "held out"), rows, numbers=2, title=title)
    if not quiet:
        if not prepared.heldout:
            click.echo(
                "nothing is held out to measure perplexity on, since the text has too few documents: name a "
                "file with --heldout, or prepare it again with --heldout-share 0.1",
                err=True,
            )
        click.echo(f"{picture}\nnext: elmokit pretrain {out} --out my-elmo", err=True)
