"""`elmokit prepare`: raw text in, a corpus for pretraining out."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from rich.table import Table

    from elmokit.corpus import PreparedCorpus, PrepareSettings

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--language", metavar="CODE", help="Language of the text: en, de, zh, …"),
    click.option("--tokenizer", metavar="NAME[:LANG]", help="Use this one, not the language's."),
    click.option("--lowercase", is_flag=True, help="Lower-case all tokens."),
    click.option("--lines", is_flag=True, help="Each line is a sentence: do not split."),
    click.option("--min-tokens", type=int, help="Drop shorter sentences.  [default: 2]"),
    click.option("--max-tokens", type=int, help="Drop longer sentences.  [default: 400]"),
    click.option("--deduplicate", is_flag=True, help="Drop sentences that stood before."),
    click.option("--min-count", type=int, help="Words seen less often are unknown.  [default: 2]"),
    click.option("--max-vocab", type=int, help="Rows of the vocabulary at most.  [default: 60000]"),
    click.option("--vocabulary", metavar="FILE", help="Take this vocabulary as it is."),
    click.option(
        "--heldout", metavar="FILE", multiple=True, help="Measure perplexity on these files or globs."
    ),
    click.option("--heldout-share", type=float, help="Else hold out this share.  [default: 0.005]"),
    click.option("--json-field", metavar="NAME", help="The text in JSON lines.  [default: text]"),
    click.option("--parquet-column", metavar="NAME", help="The text in Parquet.  [default: text]"),
)
_NAMES = (
    *("language", "tokenizer", "lowercase", "lines", "min_tokens", "max_tokens", "deduplicate"),
    *("min_count", "max_vocab", "vocabulary", "heldout", "heldout_share", "json_field", "parquet_column"),
)


def corpus_options(command: Command) -> Command:
    """Give a command the options that `read_settings` takes."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def refuse_corpus_options(options: Mapping[str, Any], corpus: str) -> None:
    """Say which of them cannot be for a corpus that is prepared already."""
    said = [name for name in _NAMES if not any(options[name] is nothing for nothing in (None, False, ()))]
    given = [f"--{name.replace('_', '-')}" for name in said]
    if given:
        raise click.UsageError(
            f"{corpus} is prepared already; leave out {', '.join(given)}, or prepare the text anew with it"
        )


def read_settings(options: Mapping[str, Any]) -> "PrepareSettings":
    """Make the settings that the options of `corpus_options` describe."""
    from elmokit.corpus import PrepareSettings
    from elmokit.errors import ConfigError

    chosen = {name: options[name] for name in _NAMES}
    chosen["split_sentences"] = not chosen.pop("lines")
    chosen["max_vocabulary"] = chosen.pop("max_vocab")
    try:
        return PrepareSettings.from_options(chosen)
    except ConfigError as error:
        raise click.UsageError(str(error)) from error


@click.command()
@click.argument("sources", metavar="CORPUS…", nargs=-1, required=True)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The folder to be made.")
@corpus_options
@click.option("--workers", type=click.IntRange(min=1), help="Processes.  [default: the cores]")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("--quiet", is_flag=True, help="No progress and no report.")
def prepare(
    sources: tuple[str, ...],
    out: Path,
    workers: int | None,
    as_json: bool,
    quiet: bool,
    **options: Any,  # noqa: ANN401 (those of corpus_options)
) -> None:
    """Prepare raw text for pretraining: clean, split, cut, count, and write it as shards of ids.

    CORPUS are files or globs: text, plain or compressed (.gz, .xz, .zst), where a blank line ends a document;
    JSON lines (.jsonl) or Parquet, where each record is one. An interrupted run goes on when the same command
    is given again.
    """
    from elmokit.corpus import prepare_corpus

    corpus = prepare_corpus(sources, out, read_settings(options), workers=workers, progress=not quiet)
    picture = _draw(corpus)
    if quiet:
        return
    from rich.console import Console

    if as_json:
        click.echo(json.dumps(corpus.report))
    else:
        Console().print(report_table(corpus))
    if not corpus.heldout:
        click.echo(
            "nothing is held out to measure perplexity on; the text has too few documents for that: "
            "name a file by --heldout, or prepare it again with --heldout-share 0.1",
            err=True,
        )
    click.echo(f"{picture}\nnext: elmokit pretrain {out} --out my-elmo", err=True)


def _draw(corpus: "PreparedCorpus") -> str:
    """Draw the sentence lengths into the corpus; say where, or why not."""
    from elmokit.corpus import draw_lengths
    from elmokit.errors import MissingExtra

    path = corpus.path / "lengths.png"
    try:
        draw_lengths(corpus.report, path)
    except MissingExtra as error:
        return f"no picture: {error}"
    return f"sentence lengths: {path}"


def report_table(corpus: "PreparedCorpus") -> "Table":
    """Lay the report of a corpus out for reading."""
    from rich.table import Table

    from elmokit.corpus import report_rows

    title = f"{corpus.path} ({corpus.fingerprint})"
    table = Table("", "train", "held out", title=title, title_justify="left")
    for column in table.columns[1:]:
        column.justify = "right"
    for group in report_rows(corpus.report):
        for row in group:
            table.add_row(*row)
        table.add_section()
    return table
