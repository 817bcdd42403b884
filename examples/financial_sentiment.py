"""Is a piece of company news good, bad or neither for an investor? The labels are very unequal in number.

ELMOKIT_DATA=… python examples/financial_sentiment.py [ENCODER]       the encoder is "en" when not given
"""

import os
import sys
import tempfile
from pathlib import Path

from elmokit import Classifier, scores_text, task_settings, train

NEWS = [
    "Operating profit rose to EUR 13.1 mn from EUR 8.7 mn in the corresponding period a year earlier.",
    "The company said it will cut 500 jobs after orders fell by a third.",
    "The annual general meeting will be held in Helsinki on 24 March.",
]


def main() -> None:
    """Train with class weights; a tenth of the sentences, set apart, is dev."""
    data = Path(os.environ["ELMOKIT_DATA"], "tasks", "sentiment-finance", "Sentences_AllAgree.txt")
    encoder = sys.argv[1] if len(sys.argv) > 1 else "en"
    settings = task_settings("classifier", ["training.class_weights=true", "training.epochs=15"])
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, "finance")
        found = train(
            "classifier",
            data,
            format="at",
            encoder=f"chars+{encoder}",
            out=out,
            settings=settings,
            progress=True,
        )
        print(scores_text(found.scores))
        for prediction in Classifier.load(out).predict(NEWS):
            shown = ", ".join(f"{label} {score:.2f}" for label, score in prediction.scores.items())
            print(f"\n{prediction.text}\n  {prediction.label}  ({shown})")


if __name__ == "__main__":
    main()
