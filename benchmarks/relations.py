"""Entities and the relations between them, found together: CoNLL-04's dev part.

ELMOKIT_DATA=… python benchmarks/relations.py FOLDER [--encoder chars+en] [--entities TAGGER]

Trains a tagger and a model of relations in FOLDER, or takes those that are there. --entities is another
tagger, such as the bundled ner-en; its kinds are called as in the data.
"""

import argparse
from pathlib import Path

from common import data_file
from elmokit.tasks import Tagger, TaskModel, evaluate_end_to_end, load_task, scores_text, train

KINDS = {"PER": "Peop", "LOC": "Loc", "ORG": "Org", "MISC": "Other"}  # of ner-en, and of the data
FORMATS = {"tagger": "multihead", "relations": None}


def main() -> None:
    """Train what is missing, and print the scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--encoder", default="chars+en")
    parser.add_argument("--entities")
    arguments = parser.parse_args()
    dev = data_file("tasks/relation-conll04/dev.txt", "CoNLL-04 in the multi-head format")
    models: dict[str, TaskModel] = {}
    for task, format in FORMATS.items():
        if task == "tagger" and arguments.entities:
            models[task] = Tagger.load(arguments.entities)
            continue
        out = arguments.folder / task
        if not (out / "config.json").exists():
            train(
                task, dev.parent, format=format, encoder=arguments.encoder, tokenizer="rules:en", out=out,
                resume=out.exists(), progress=True,
            )  # fmt: skip
        models[task] = load_task(out)
    rename = KINDS if arguments.entities else None
    print(scores_text(evaluate_end_to_end(models["relations"], models["tagger"], dev, rename=rename)))


if __name__ == "__main__":
    main()
