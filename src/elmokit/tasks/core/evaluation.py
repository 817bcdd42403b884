"""How well a trained model does on labelled data, and the report files of a training."""

import csv
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from elmokit.base import output_file, write_json
from elmokit.errors import MissingExtra
from elmokit.tasks.core import pictures
from elmokit.tasks.core.counting import Scores
from elmokit.tasks.core.inputs import LearntMix
from elmokit.tasks.core.labelled_files import Columns
from elmokit.tasks.core.protocol import E, O
from elmokit.tasks.core.task_model import TaskModel

logger = logging.getLogger(__name__)


def evaluate(
    model: TaskModel[Any, Any, Any],
    path: str | Path,
    *,
    format: str | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    strict: bool = False,
    allow_unseen: bool = False,
    errors: str | Path | None = None,
) -> Scores:
    """Evaluate a model on a labelled file.

    Args:
        model: the model.
        path: the file.
        format: by the file's ending if not given.
        text_column: the column of a table with the text; see `train`.
        label_column: the same for the label.
        strict: count only well-formed predictions: an entity only if all its tags are legal.
        allow_unseen: count labels that are not in the training data as errors.
        errors: a file for the wrong predictions, one per line.

    Raises:
        DataError: the file cannot be used, or `errors` cannot be written.
    """
    read = model.task.formats.read(
        Path(path),
        tokenize=model.task.formats.tokenizer(model.tokenizer),
        format=format,
        columns=Columns(text_column, label_column),
    )
    examples = model.task.prepare(read, allow_unseen=allow_unseen)
    outputs = model.decode(examples)
    if errors is not None:
        write_errors(Path(errors), model, examples, outputs)
    return model.task.score(examples, outputs, strict=strict)


def write_report(
    folder: Path, model: TaskModel[E, O, Any], examples: Sequence[E], history: Sequence[dict[str, Any]]
) -> Scores:
    """Score the dev examples; write scores.json, errors.tsv and, with matplotlib, pictures."""
    outputs = model.decode(examples)
    scores = model.task.score(examples, outputs)
    mixes = model.inputs.learnt_mixes()
    write_json(folder / "scores.json", scores.to_dict() | {"mixes": [vars(mix) for mix in mixes]})
    write_errors(folder / "errors.tsv", model, examples, outputs)
    try:
        pictures.draw_learning_curve(history, scores.main, folder / "learning-curve.png")
        if scores.confusion:
            pictures.draw_confusion(scores, folder / "confusion.png")
        if mixes:
            pictures.draw_mixes(mixes, folder / "layer-weights.png")
    except MissingExtra as missing:
        logger.info("no pictures: %s", missing)
    return scores


def write_errors(
    path: Path, model: TaskModel[E, O, Any], examples: Sequence[E], outputs: Sequence[O]
) -> None:
    """Write a table of the wrong predictions: place, text, what is true, what was predicted."""
    rows = []
    for example, output in zip(examples, outputs, strict=True):
        gold, predicted = model.task.describe(example, output)
        if gold != predicted:
            text = " ||| ".join(" ".join(tokens) for tokens in example.texts)
            rows.append((example.where, text, gold, predicted))
    with (
        output_file(path) as draft,
        draft.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file,
    ):
        writer = csv.writer(
            file, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONE, escapechar="\\"
        )
        writer.writerows([("where", "text", "gold", "predicted"), *rows])


def scores_text(scores: Scores) -> str:
    """Return the scores as a table for people, in percent."""
    lines = [f"{name:<16}{100 * value:7.2f}" for name, value in scores.values.items()]
    if scores.interval is not None:
        low, high = scores.interval
        lines[0] += f"   95 % within {100 * low:.2f} and {100 * high:.2f}"
    if scores.classes or scores.labels:
        width = max([5, *(len(one.label) for one in scores.classes)])
        lines += ["", f"{'label':<{width}}  precision  recall      F1  support"]
        lines += [
            f"{one.label:<{width}}  {100 * one.precision:9.2f} {100 * one.recall:7.2f} {100 * one.f1:7.2f} "
            f"{one.support:8,}"
            for one in scores.classes
        ]
    return "\n".join(lines)


def mixes_text(mixes: Sequence[LearntMix]) -> str:
    """Return the learnt weights of the layers as a table for people."""
    lines = []
    for mix in mixes:
        shares = "  ".join(f"{share:.3f}" for share in mix.shares)
        lines.append(f"{mix.place:<7} γ {mix.gamma:6.3f}   layers from below  {shares}   {mix.encoder}")
    return "\n".join(lines)
