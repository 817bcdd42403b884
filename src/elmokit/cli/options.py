"""The options that several commands share, each written once.

What a command reads is an argument (a file, or `-` for standard input), what it writes is `--out`, and the
model it uses is `--model`. docs/guides/command-line.md shows the whole grammar; a test checks every command.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import reduce, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click
from click.core import ParameterSource

from elmokit.errors import DataError
from elmokit.tasks import TASKS

if TYPE_CHECKING:
    from elmokit.text import Input, TextColumn

LAYER_NAMES = ("all", "top", "average", "mix")

Command: TypeAlias = Callable[..., Any]
Decorator: TypeAlias = Callable[[Command], Command]

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line.")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Show no progress and no summary.")
weights_option = click.option(
    "--weights", type=click.Path(), help="The weights, if they are not beside the options."
)
precision_option = click.option(
    "--precision",
    type=click.Choice(("float32", "int8", "bfloat16", "auto")),
    default="float32",
    help="Precision of ELMo's products; auto is the fastest here.",
)
device_option = click.option("--device", default="cpu", help="cpu, cuda, mps, …, or auto for the fastest.")
tokenizer_option = click.option(
    "--tokenizer", metavar="NAME[:LANG]", help="Use this tokenizer instead of the model's own."
)
words_option = click.option(
    "--words",
    metavar="NAME[:LANG]",
    help="Join characters into the words of this tokenizer: jieba.",
)
match_case_option = click.option("--match-case", is_flag=True, help="Upper and lower case are different.")
language_option = click.option("--language", metavar="CODE", help="Language of the text: en, de, zh, …")
overwrite_option = click.option("--overwrite", is_flag=True, help="Replace what is at --out.")
resume_option = click.option("--resume", is_flag=True, help="Resume the interrupted run at --out.")
task_model_option = click.option(
    *("-m", "--model"),
    required=True,
    type=click.Path(),
    help="A folder that `train` wrote, or a bundled name.",
)
search_option = click.option(
    *("--set", "changes"),
    multiple=True,
    metavar="NAME=VALUE",
    help="Change how a text is written, e.g. head.beam=10.",
)
format_option = click.option("--format", help="Format of the data.  [default: by the file's ending]")
_COLUMN = "Column of a table with the {0}: its name, or number without header.  [default: {0}]"
allow_unseen_option = click.option(
    "--allow-unseen", is_flag=True, help="Count labels that are not in the training data as errors."
)


def _unit_options(default: str) -> tuple[Decorator, ...]:
    """Return the three options that say what a line of the text is."""
    meanings = {
        "lines": "Each line is a sentence.",
        "split": "Running text: split it into sentences.",
        "tokens": "Each line is a sentence of tokens separated by spaces.",
    }
    meanings[default] += "  [default]"
    return tuple(click.option(f"--{name}", is_flag=True, help=help) for name, help in meanings.items())


def together(*decorators: Decorator) -> Decorator:
    """Return one decorator for several, which are applied as if they were stacked in this order."""
    return lambda command: reduce(lambda inner, decorate: decorate(inner), reversed(decorators), command)


def choice_option(names: str, choices: str, description: str, default: str | None = None) -> Decorator:
    """Add an option that takes one of several words; `names` may hold the parameter's name, too."""
    return click.option(*names.split(), type=click.Choice(choices.split()), default=default, help=description)


def count_option(*names: str, default: int | None = None, description: str) -> Decorator:
    """Add an option that takes a number of 1 or more."""
    return click.option(*names, type=click.IntRange(min=1), metavar="N", default=default, help=description)


def _layers(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    """Return a name, the number of a layer, or the numbers of several, which have commas between them."""
    if value is None or value in LAYER_NAMES:
        return value
    try:
        numbers = [int(number) for number in value.split(",")]
    except ValueError:
        names = ", ".join(LAYER_NAMES)
        raise click.BadParameter(f"{value!r} is none of {names}, a number, or numbers such as 0,2") from None
    return numbers if "," in value else numbers[0]


def layers_option(description: str, default: str | None = None) -> Decorator:
    """Add `--layers`, which takes a name, a number, or a list of numbers."""
    return click.option("--layers", callback=_layers, metavar="LAYERS", default=default, help=description)


column_options = together(
    click.option("--text-column", metavar="NAME", help=_COLUMN.format("text")),
    click.option("--label-column", metavar="NAME", help=_COLUMN.format("label")),
)
workers_option = count_option("--workers", description="Number of processes.")


def _adapt(_: click.Context, option: click.Parameter, value: str | None) -> bool | float:
    """Return whether the encoder is adapted, or for how many minutes."""
    if value is None or value == _ONCE:
        return value == _ONCE
    minutes: float = click.FloatRange(min=0, min_open=True)(value, option)
    return minutes


_ONCE = "once"
adapt_options = together(
    click.option(
        "--adapt",
        is_flag=False,
        flag_value=_ONCE,
        metavar="[MINUTES]",
        callback=_adapt,
        help="Let ELMo read the training text first, once or for so long.",
    ),
    click.option(
        "--adapt-text", type=click.Path(), multiple=True, help="With --adapt: more text for ELMo to read."
    ),
)
task_data = together(
    click.argument("task", type=click.Choice(TASKS)),
    click.argument("data", type=click.Path()),
    click.option("--dev", type=click.Path(), help="The dev file.  [default: DATA's, or a tenth of the data]"),
    format_option,
    column_options,
    click.option("--tokenizer", metavar="NAME[:LANG]", help="Tokenizer of text.  [default: the encoder's]"),
    count_option("--epochs", description="Train for at most this many epochs."),
    allow_unseen_option,
    adapt_options,
    click.option(
        "--set", "changes", multiple=True, metavar="NAME=VALUE", help="Change a setting, e.g. head.rnn=100."
    ),
)

_CORPUS_OPTIONS: tuple[Decorator, ...] = (
    language_option,
    *_unit_options("split"),
    click.option("--tokenizer", metavar="NAME[:LANG]", help="Tokenizer.  [default: the language's]"),
    click.option("--lowercase", is_flag=True, help="Lower-case all tokens."),
    click.option("--min-tokens", type=int, help="Drop shorter sentences.  [default: 2]"),
    click.option("--max-tokens", type=int, help="Drop longer sentences.  [default: 400]"),
    click.option("--deduplicate", is_flag=True, help="Drop sentences that occurred before."),
    click.option("--min-count", type=int, help="Rarer words are not in the vocabulary.  [default: 2]"),
    click.option("--max-vocab", "max_vocabulary", type=int, help="Size of the vocabulary.  [default: 60000]"),
    click.option("--vocabulary", type=click.Path(), help="Use this vocabulary file instead."),
    click.option(
        "--heldout", type=click.Path(), multiple=True, help="Files or globs to measure perplexity on."
    ),
    click.option("--heldout-share", type=float, help="Hold out this share instead.  [default: 0.005]"),
    click.option("--json-field", metavar="NAME", help="Field of JSON lines with the text.  [default: text]"),
    click.option("--parquet-column", metavar="NAME", help="The same for Parquet.  [default: text]"),
)
_CORPUS_NAMES = (
    *("language", "tokenizer", "lowercase", "min_tokens", "max_tokens", "deduplicate", "min_count"),
    *("max_vocabulary", "vocabulary", "heldout", "heldout_share", "json_field", "parquet_column"),
)


def out_option(description: str, *, required: bool = True) -> Decorator:
    """Add `-o/--out`."""
    return click.option("-o", "--out", required=required, type=click.Path(), help=description)


def _picture(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is not None:
        from elmokit.base import check_picture

        check_picture(Path(value))
    return value


def picture_option(description: str) -> Decorator:
    """Add `--picture`, which is checked before the work begins."""
    return click.option("--picture", type=click.Path(), callback=_picture, help=description)


def model_options(command: Command) -> Command:
    """Add `--model` and how to open it; the command gets `model`, the arguments of a `load` function."""

    @wraps(command)
    def run(*, model: str, weights: str | None, tokenizer: str | None, device: str, **options: Any) -> Any:
        opened = {"path": model, "weights": weights, "tokenizer": tokenizer, "device": device}
        if "words" in options:
            refuse_together(tokens=options.get("tokens", False), words=bool(options["words"]))
            opened["words"] = options.pop("words")
        return command(model=opened, **options)

    model_option = click.option(
        *("-m", "--model"),
        default="en",
        help="A bundled model (en, zh), a folder, an options.json or a zip.",
    )
    return together(model_option, weights_option, tokenizer_option, device_option)(run)


def text_input(command: Command) -> Command:
    """Add INPUT, `--text` and how to read them; the command gets `source`, `tokens` and `split`.

    A table is never read as lines unless `--lines` says so: its source is a `TextColumn`.
    """

    @wraps(command)
    def run(
        *,
        source: str | None,
        texts: tuple[str, ...],
        split: bool,
        tokens: bool,
        lines: bool,
        language: str | None,
        text_column: str | None,
        **options: Any,
    ) -> Any:
        refuse_together(lines=lines, split=split, tokens=tokens)
        refuse_together(lines=lines, text_column=text_column is not None)
        refuse_together(tokens=tokens, tokenizer=bool(options.get("tokenizer")))
        if language and not split:
            raise click.UsageError("--language has no effect without --split")
        if source is not None and texts:
            raise click.UsageError("choose between INPUT and --text")
        if text_column is not None and source is None:
            raise click.UsageError("--text-column needs a table as INPUT: a .csv, .tsv or .jsonl file")
        given = texts or _checked(source, text_column, lines=lines)
        return command(source=given, tokens=tokens, split=split and (language or True), **options)

    return together(
        click.argument("source", metavar="[INPUT]", required=False, type=click.Path()),
        click.option(
            "-t", "--text", "texts", multiple=True, help="Use this text instead of INPUT; may be repeated."
        ),
        *_unit_options("lines"),
        language_option,
        click.option(
            "--text-column",
            metavar="NAME",
            help="Column of a .csv, .tsv or .jsonl with the sentences.  [default: text]",
        ),
    )(run)


def corpus_input(command: Command) -> Command:
    """Add the corpus and how to prepare it; the command gets `sources` and, in `corpus`, what was chosen.

    The names in `corpus` are those of `PrepareSettings.from_options`.
    """

    @wraps(command)
    def run(*, lines: bool, split: bool, tokens: bool, **options: Any) -> Any:
        refuse_together(lines=lines, split=split, tokens=tokens)
        refuse_together(tokens=tokens, tokenizer=bool(options["tokenizer"]))
        chosen = {name: options.pop(name) for name in _CORPUS_NAMES}
        corpus = {name: value for name, value in chosen.items() if value or type(value) in (int, float)}
        corpus |= {"split_sentences": split} if lines or split or tokens else {}
        corpus |= {"tokenizer": "whitespace"} if tokens else {}
        return command(corpus=corpus, **options)

    return together(click.argument("sources", metavar="INPUT…", nargs=-1), *_CORPUS_OPTIONS)(run)


def refuse_together(**given: bool) -> None:
    """Raise a UsageError if more than one of these options was given."""
    names = [f"--{name.replace('_', '-')}" for name, is_given in given.items() if is_given]
    if len(names) > 1:
        raise click.UsageError(f"choose one of {' and '.join(names)}")


def refuse_unused(names: Sequence[str], where: str) -> None:
    """Raise a UsageError if one of these parameters was given on the command line, where it has no effect."""
    context = click.get_current_context()
    for option in context.command.params:
        given = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if given and option.name in names:
            raise click.UsageError(f"{max(option.opts, key=len)} has no effect {where}")


def stdin_is_terminal() -> bool:
    """Return whether standard input is a person at a keyboard, whom a command must not wait for."""
    return sys.stdin is None or sys.stdin.isatty()


def _checked(source: str | None, text_column: str | None, *, lines: bool) -> "str | TextColumn":
    """Return the path of the text, "-" for standard input if none was given, or a column of a table."""
    from elmokit.text import TextColumn, is_table

    if source is None:
        if stdin_is_terminal():
            raise click.UsageError("there is nothing to read; pass a file, or text with --text")
        return "-"
    if source != "-" and not os.path.exists(source):  # noqa: PTH110 (a whole sentence is no valid Path)
        raise DataError(
            f"{source} does not exist, expected a text file; check the path, or pass text with --text"
        )
    if text_column is not None and not (is_table(source) or source.endswith(".parquet")):
        raise click.UsageError("--text-column needs a table as INPUT: a .csv, .tsv or .jsonl file")
    return (
        TextColumn(source, text_column or "text")
        if text_column or (is_table(source) and not lines)
        else source
    )


def read_input(
    source: "str | TextColumn | tuple[str, ...]", *, tokens: bool, split: bool | str, language: str | None
) -> "Iterator[Input]":
    """Return the sentences, or lists of tokens, that `text_input` names; `language` is the model's."""
    from elmokit.text import read_texts, split_language

    return read_texts(source, tokens=tokens, split=split_language(split, language, tokens=tokens))


def read_documents(source: "str | TextColumn | tuple[str, ...]", *, tokens: bool) -> "Iterator[Any]":
    """Return the documents that `text_input` names, or the tokens of their sentences."""
    from elmokit.text import read_documents

    return read_documents(source, tokens=tokens)


def shown(prediction: Any, style: str) -> str:
    """Return a prediction for people: as text, or in another way that predictions of its task have.

    Raises:
        UsageError: it cannot be shown in that way.
    """
    ways = ("coloured", "__str__") if style == "text" else (style,)
    way = next((getattr(prediction, name) for name in ways if hasattr(prediction, name)), None)
    if way is None:
        known = " or ".join(["text", *(name for name in ("table", "html") if hasattr(prediction, name))])
        raise click.UsageError(f"--show {style}: the predictions of this task are shown as {known}")
    text: str = way()
    return text


def page(shown: Sequence[Any]) -> str:
    """Return a page of HTML that shows these results."""
    parts = "\n".join(one.html() for one in shown)
    return f'<!doctype html>\n<meta charset="utf-8">\n<title>elmokit</title>\n{parts}'


def latency_of(source: "str | TextColumn | tuple[str, ...]") -> float | None:
    """Return how long a text may wait for others: 0 if it comes through a pipe, to answer line by line."""
    return 0.0 if isinstance(source, str) and not Path(source).is_file() else None
