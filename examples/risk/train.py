"""Train the three models that examples/risk/report.py uses; those that are there already are kept.

ELMOKIT_DATA=… python examples/risk/train.py MODELS [--encoder en] [--share 1.0] [--epochs 10]

sentiment    news of companies: positive, neutral, negative     (Financial PhraseBank)
fraud        messages: spam or not                              (SMS Spam Collection)
relations    who works for whom, which company is where         (CoNLL-04)
"""

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

from elmokit import task_settings, train


@dataclass(frozen=True)
class Model:
    """A task, its data below $ELMOKIT_DATA/tasks, their format, and settings."""

    task: str
    data: str
    format: str | None = None
    changes: tuple[str, ...] = ()


MODELS = {
    "sentiment": Model(
        "classifier", "sentiment-finance/Sentences_AllAgree.txt", "at", ("training.class_weights=true",)
    ),
    "fraud": Model(
        "classifier", "fraud-sms/SMSSpamCollection.xz", "tsv",
        ("head.pooling=max", "training.class_weights=true"),
    ),
    "relations": Model("relations", "relation-conll04"),
}  # fmt: skip


def main() -> None:
    """Train one after another."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", type=Path, help="folder for the three models")
    parser.add_argument("--encoder", default="en")
    parser.add_argument("--share", type=float, default=1.0, help="of the training data, to try it out")
    parser.add_argument("--epochs", type=int, default=10, help="at most")
    arguments = parser.parse_args()
    data = Path(os.environ["ELMOKIT_DATA"], "tasks")
    for name, model in MODELS.items():
        out = arguments.models / name
        if (out / "scores.json").exists():
            print(f"{name}: {out} is there already")
            continue
        changes = [*model.changes, f"training.share={arguments.share}", f"training.epochs={arguments.epochs}"]
        found = train(
            model.task,
            data / model.data,
            format=model.format,
            encoder=f"chars+{arguments.encoder}",
            tokenizer="rules:en",
            settings=task_settings(model.task, changes),
            out=out,
            resume=out.exists(),
            allow_unseen=True,
            progress=True,
        )
        print(f"{name}: dev {found.scores.main} {100 * found.scores.value:.2f}")


if __name__ == "__main__":
    main()
