"""`elmokit evaluate`: how good a trained model is on labelled data."""

import json

import click


@click.command()
@click.argument("model")
@click.argument("data")
@click.option("--format", help="Of the data.  [default: by its ending]")
@click.option("--strict", is_flag=True, help="Count an entity only if its tags are legal from begin to end.")
@click.option("--allow-unseen", is_flag=True, help="Let labels that were not in training count as errors.")
@click.option("--errors", metavar="FILE", help="Write what is wrong to FILE, tab-separated.")
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda, …, or auto.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def evaluate(
    model: str,
    data: str,
    format: str | None,
    strict: bool,
    allow_unseen: bool,
    errors: str | None,
    device: str,
    as_json: bool,
) -> None:
    """Print the scores of MODEL on the labelled file DATA, in percent (--json: shares)."""
    from elmokit.tasks import evaluate as evaluate_model
    from elmokit.tasks import load_task, scores_text

    scores = evaluate_model(
        load_task(model, device=device),
        data,
        format=format,
        strict=strict,
        allow_unseen=allow_unseen,
        errors=errors,
    )
    click.echo(json.dumps(scores.to_dict(), ensure_ascii=False) if as_json else scores_text(scores))
