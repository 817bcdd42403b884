"""`elmokit train`: labelled data in, a model folder out."""

import click


@click.command()
@click.argument("task", type=click.Choice(["tagger", "classifier", "intent"]))
@click.argument("data")
@click.option(
    "--encoder", required=True, metavar="SPEC", help="Such as en, glove:FILE+chars+en, bert:FOLDER."
)
@click.option("--out", required=True, metavar="FOLDER", help="Where the model and its report go.")
@click.option(
    "--dev", metavar="FILE", help="The dev file.  [default: DATA's, or a tenth of the training data]"
)
@click.option("--format", help="Of the files.  [default: by their endings]")
@click.option("--tokenizer", metavar="NAME[:LANG]", help="For running text.  [default: the encoder's]")
@click.option("--epochs", type=click.IntRange(min=1), help="At most so many.")
@click.option("--seed", type=click.IntRange(min=0), help="Of all random numbers.")
@click.option(
    "--tune-from",
    type=click.IntRange(min=0),
    metavar="LAYER",
    help="Train the encoder too, from this layer up (0: all of it).  [default: leave it as it is]",
)
@click.option("--multi-label", is_flag=True, help="A text may have several labels.")
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="NAME=VALUE",
    help="Any other setting, such as head.rnn=100 or encoder.gradual=true.",
)
@click.option("--cache", metavar="FOLDER", help="Keep the encoder's vectors here, for other runs too.")
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda, …, or auto.")
@click.option("--self-contained", is_flag=True, help="Save the encoder with the model.")
@click.option("--allow-unseen", is_flag=True, help="Let labels that are new in dev count as errors.")
@click.option("--resume", is_flag=True, help="Go on with a training that was interrupted.")
@click.option("--overwrite", is_flag=True, help="Replace what is in the folder.")
@click.option("--quiet", is_flag=True, help="No progress and no summary.")
def train(
    task: str,
    data: str,
    encoder: str,
    out: str,
    dev: str | None,
    format: str | None,
    tokenizer: str | None,
    epochs: int | None,
    seed: int | None,
    tune_from: int | None,
    multi_label: bool,
    changes: tuple[str, ...],
    cache: str | None,
    device: str,
    self_contained: bool,
    allow_unseen: bool,
    resume: bool,
    overwrite: bool,
    quiet: bool,
) -> None:
    """Train a TASK on DATA, a folder with train and dev in it, or the training file.

    The folder that is written holds the model and, of its decisions on dev, scores.json, errors.tsv and
    pictures.
    """
    from elmokit.tasks import mixes_text, scores_text, task_settings
    from elmokit.tasks import train as train_task

    flags = {
        "training.epochs": epochs,
        "training.seed": seed,
        "encoder.tune_from": tune_from,
        "head.multi_label": "true" if multi_label else None,
    }
    given = [f"{name}={value}" for name, value in flags.items() if value is not None]
    found = train_task(
        task,
        data,
        encoder=encoder,
        out=out,
        settings=task_settings(task, [*changes, *given]),
        dev=dev,
        format=format,
        tokenizer=tokenizer,
        cache=cache,
        device=device,
        self_contained=self_contained,
        allow_unseen=allow_unseen,
        resume=resume,
        overwrite=overwrite,
        progress=not quiet,
    )
    if quiet:
        return
    click.echo(scores_text(found.scores))
    mixes = found.model.inputs.learnt_mixes()
    if mixes:
        click.echo("\n" + mixes_text(mixes))
    best = max(found.history, key=lambda entry: entry["dev"])["epoch"]
    click.echo(f"\n{out}: best of {len(found.history)} epochs was {best}; {found.seconds:,.0f} s", err=True)
