"""Drugs and diseases in medical abstracts (BC5CDR), with the errors to look at.

ELMOKIT_DATA=… python examples/medical_entities.py [ENCODER]       the encoder is "en" when not given
"""

import os
import sys
import tempfile
from pathlib import Path

from elmokit import Tagger, scores_text, task_settings, train

TEXTS = [
    "Naloxone reverses the antihypertensive effect of clonidine.",
    "Two patients developed acute renal failure after high doses of ibuprofen.",
]


def main() -> None:
    """Train on a part of the data, for speed; print scores, entities and the first errors."""
    data = Path(os.environ["ELMOKIT_DATA"], "tasks", "ner-medical", "bc5cdr")
    encoder = sys.argv[1] if len(sys.argv) > 1 else "en"
    settings = task_settings("tagger", ["training.share=0.5", "training.epochs=10"])
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, "medical")
        found = train("tagger", data, encoder=f"chars+{encoder}", out=out, settings=settings, progress=True)
        print(scores_text(found.scores))
        for prediction in Tagger.load(out).predict(TEXTS):
            print(f"\n{prediction.text}")
            for span in prediction.spans:
                print(f"  {span.label:<9} {span.probability:.2f}  {span.text}")
        print("\nthe first errors on dev (gold, predicted):")
        for line in (out / "errors.tsv").read_text(encoding="utf-8").splitlines()[1:4]:
            print("  " + "\n    ".join(line.split("\t")[2:]))


if __name__ == "__main__":
    main()
