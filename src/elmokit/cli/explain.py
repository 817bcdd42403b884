"""`elmokit explain`: which words a vector or a decision is made of."""

import sys
from typing import Any

import click

from elmokit.cli import options
from elmokit.cli.printing import print_json

_OF_MODELS = ("model", "weights", "tokenizer", "other")
_OF_EXAMPLES = ("k", "format", "text_column", "label_column")
_OF_TASKS = ("label", "examples", *_OF_EXAMPLES)


@click.command()
@click.argument("text")
@options.model_options
@click.option("--task", type=click.Path(), help="Explain the decisions of this task model.")
@click.option("--at", metavar="WORD", help="Explain this word of TEXT, or the one at this position from 0.")
@click.option("--other", metavar="TEXT", help="Explain how similar TEXT is to this text.")
@click.option("--label", help="Explain this label, chosen or not.")
@click.option("--examples", type=click.Path(), help="Find examples like TEXT in this labelled file.")
@options.count_option("-k", default=5, description="How many of them.")
@options.format_option
@options.column_options
@options.choice_option("--show", "text html", "Print text, or a page of HTML.", default="text")
@options.precision_option
@options.json_option
def explain(
    text: str,
    model: dict[str, Any],
    task: str | None,
    at: str | None,
    other: str | None,
    show: str,
    precision: str,
    as_json: bool,
    **settings: Any,
) -> None:
    """Show which words a vector or a decision is made of.

    Without --task: how far the vector of TEXT, or of a word, turns when each word is left out.

    With --task: each decision about TEXT, and what the words and layers contribute to it. A pair of texts has
    a tab between them. "-" reads TEXT from standard input.
    """
    import elmokit

    options.refuse_unused(_OF_MODELS if task else _OF_TASKS, "with --task" if task else "without --task")
    options.refuse_unused(() if settings["examples"] else _OF_EXAMPLES, "without --examples")
    text = sys.stdin.read().rstrip("\n") if text == "-" else text
    place = int(at) if at is not None and at.isdecimal() else at
    found: list[Any]
    if task is None:
        embedder = elmokit.load(**model, precision=precision)
        found = [elmokit.explain_vector(embedder, text, at=place, other=other)]
    else:
        task_model = elmokit.load_task(task, device=model["device"], precision=precision)
        found = elmokit.explain(task_model, text, at=place, progress=True, **settings)
    if not found:
        click.echo("the model found nothing in the text; ask about a word with --at", err=True)
    elif as_json:
        print_json(*found)
    else:
        click.echo(options.page(found) if show == "html" else "\n\n".join(one.coloured() for one in found))
