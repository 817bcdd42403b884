"""Customer service: what does the user want, and with which particulars? Intents and slots learnt together.

ELMOKIT_DATA=… python examples/intents.py [ENCODER]       the encoder is "en" when not given
"""

import os
import sys
import tempfile
from pathlib import Path

from elmokit import IntentModel, task_settings, train

REQUESTS = [
    "book a table for four at an italian restaurant in boston tomorrow",
    "play the new album by taylor swift",
    "will it rain in london on friday",
    "add this song to my workout playlist",
]


def main() -> None:
    """Train on a part of the data, for speed; print scores and what was understood."""
    data = Path(os.environ["ELMOKIT_DATA"], "tasks", "intent-snips")
    encoder = sys.argv[1] if len(sys.argv) > 1 else "en"
    settings = task_settings("intent", ["training.share=0.2", "training.epochs=12", "head.scheme=BIO"])
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, "intents")
        found = train("intent", data, encoder=f"chars+{encoder}", out=out, settings=settings, progress=True)
        values = found.scores.values
        print(f"dev: slots F1 {values['slot_f1']:.3f}, intents {values['intent_accuracy']:.3f}\n")
        for prediction in IntentModel.load(out).predict(REQUESTS):
            slots = ", ".join(f"{slot.label} = {slot.text}" for slot in prediction.spans)
            print(f"{prediction.text}\n  {prediction.label}: {slots}")


if __name__ == "__main__":
    main()
