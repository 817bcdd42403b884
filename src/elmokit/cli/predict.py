"""`elmokit predict`: text in, labels out."""

from typing import Any

import click

from elmokit.cli import options
from elmokit.cli.printing import print_json


@click.command()
@options.text_input
@options.task_model_option
@options.picture_option("Draw the first prediction, its alignment or attention: .png, .svg or .pdf.")
@options.choice_option("--show", "text table html", "How to show roles, clusters, attention.", default="text")
@options.search_option
@options.device_option
@options.precision_option
@options.json_option
def predict(
    source: Any,
    tokens: bool,
    split: bool | str,
    model: str,
    picture: str | None,
    show: str,
    changes: tuple[str, ...],
    device: str,
    precision: str,
    as_json: bool,
) -> None:
    """Label each sentence of a text with a trained model.

    Lines from a pipe are answered as they come. A blank line has no label. Where a task reads two texts, a
    line has a tab between them: premise and hypothesis, question and passage, the turns of a dialogue. Where
    it reads documents (coreference), these have blank lines between them; with --tokens, a line is a
    sentence.
    """
    from elmokit.tasks import load_task

    task_model = load_task(model, device=device, precision=precision, changes=changes)
    language = task_model.tokenizer.language
    documents = getattr(task_model.task, "reads_documents", False)
    if documents:
        texts = options.read_documents(source, tokens=tokens)
    else:
        texts = options.read_input(source, tokens=tokens, split=split, language=language)
    for prediction in task_model.stream(texts, latency=options.latency_of(source)):
        if picture is not None:
            if not hasattr(prediction, "draw"):
                raise click.UsageError("--picture: the predictions of this task are not drawn")
            prediction.draw(picture)
            click.echo(f"wrote {picture}", err=True)
            picture = None
        print_json(prediction) if as_json else click.echo(options.shown(prediction, show) + "\n" * documents)
