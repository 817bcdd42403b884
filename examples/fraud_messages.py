"""Fraudulent and unwanted messages (SMS): rare, so look at precision and recall and not at accuracy.

ELMOKIT_DATA=… python examples/fraud_messages.py [ENCODER]       the encoder is "en" when not given
"""

import os
import sys
import tempfile
from pathlib import Path

from elmokit import Classifier, scores_text, task_settings, train

MESSAGES = [
    "URGENT! You have won a £1,000 prize. Call 09061701461 now to claim.",
    "Your parcel is held. Pay the fee of 1.99 at http://post-fee.example to release it.",
    "Running late, start without me. Sorry!",
]


def main() -> None:
    """Train; a tenth of the messages, set apart, is dev."""
    data = Path(os.environ["ELMOKIT_DATA"], "tasks", "fraud-sms", "SMSSpamCollection.xz")
    encoder = sys.argv[1] if len(sys.argv) > 1 else "en"
    settings = task_settings(
        "classifier", ["head.pooling=max", "training.epochs=8", "training.class_weights=true"]
    )
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, "fraud")
        found = train(
            "classifier",
            data,
            format="tsv",
            encoder=f"chars+{encoder}",
            out=out,
            settings=settings,
            progress=True,
        )
        print(scores_text(found.scores))
        for prediction in Classifier.load(out).predict(MESSAGES):
            print(f"\n{prediction.scores['spam']:.3f} spam  {prediction.text}")


if __name__ == "__main__":
    main()
