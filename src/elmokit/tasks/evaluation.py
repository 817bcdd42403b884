"""How good a trained model is on labelled data, and the files that say so."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from elmokit.errors import MissingExtra
from elmokit.tasks import pictures
from elmokit.tasks.decisions import Decision
from elmokit.tasks.examples import Example
from elmokit.tasks.metrics import Scores, score
from elmokit.tasks.model import TaskModel
from elmokit.tasks.prepare import check_known, expect_one_label, learnt_tags
from elmokit.tasks.readers import read_examples
from elmokit.tasks.report import write_errors
from elmokit.text import make_word_cutter

logger = logging.getLogger(__name__)


def evaluate_examples(
    model: TaskModel, examples: Sequence[Example], *, strict: bool = False
) -> tuple[Scores, list[Decision]]:
    """Scores and decisions for examples whose tags are in the scheme that was learnt."""
    decisions = model.decide([example.tokens for example in examples])
    return score(model.config, examples, decisions, strict=strict), decisions


def evaluate(
    model: TaskModel,
    path: str | Path,
    *,
    format: str | None = None,
    strict: bool = False,
    allow_unseen: bool = False,
    errors: str | Path | None = None,
) -> Scores:
    """Evaluate a model on a labelled file.

    Args:
        model: the model.
        path: the file.
        format: by the file's ending when not given.
        strict: count an entity only if its tags are legal from begin to end; matters without a CRF.
        allow_unseen: let labels that were not in the training data count as errors.
        errors: a file for what is wrong, a line each.

    Raises:
        DataError: the file cannot be used.
    """
    config = model.config
    cut = make_word_cutter(config.tokenizer)
    examples = learnt_tags(read_examples(path, config.task, cut=cut, format=format), config)
    if config.task != "tagger" and not config.settings.head.multi_label:
        expect_one_label(examples)
    if not allow_unseen:
        check_known(examples, config)
    scores, decisions = evaluate_examples(model, examples, strict=strict)
    if errors is not None:
        write_errors(Path(errors), examples, decisions, config.learnt_scheme)
    return scores


def write_report(
    folder: Path,
    model: TaskModel,
    scores: Scores,
    examples: Sequence[Example],
    decisions: Sequence[Decision],
    history: Sequence[dict[str, Any]],
) -> None:
    """Write scores.json, errors.tsv and, with matplotlib, the pictures."""
    mixes = model.inputs.learnt_mixes()
    report = scores.to_dict() | {"mixes": [vars(mix) for mix in mixes]}
    (folder / "scores.json").write_text(
        json.dumps(report, indent=2, ensure_ascii=False), encoding="utf-8", errors="backslashreplace"
    )
    write_errors(folder / "errors.tsv", examples, decisions, model.config.learnt_scheme)
    try:
        pictures.draw_learning_curve(history, scores.main, folder / "learning-curve.png")
        if scores.confusion:
            pictures.draw_confusion(scores, folder / "confusion.png")
        if mixes:
            pictures.draw_mixes(mixes, folder / "layer-weights.png")
    except MissingExtra as missing:
        logger.info("no pictures: %s", missing)
