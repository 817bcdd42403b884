"""Named entities: learn persons, places and organisations from CoNLL-2003, and find them in new text.

ELMOKIT_DATA=… python examples/named_entities.py [ENCODER]       the encoder is "en" when not given
"""

import os
import sys
import tempfile
from pathlib import Path

from elmokit import Tagger, mixes_text, scores_text, task_settings, train

TEXTS = [
    "Angela Merkel met Emmanuel Macron in Paris on Monday.",
    "Liverpool beat Real Madrid 2-1 at Anfield.",
    "The German company Siemens sold its plant in Ohio to General Electric.",
]


def main() -> None:
    """Train on a fifth of the data, for speed; print scores, layer weights and entities."""
    data = Path(os.environ["ELMOKIT_DATA"], "tasks", "ner-conll2003")
    encoder = sys.argv[1] if len(sys.argv) > 1 else "en"
    settings = task_settings("tagger", ["training.share=0.2", "training.epochs=12"])
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, "ner")
        found = train("tagger", data, encoder=f"chars+{encoder}", out=out, settings=settings, progress=True)
        print(scores_text(found.scores), mixes_text(found.model.inputs.learnt_mixes()), sep="\n\n")
        for prediction in Tagger.load(out).predict(TEXTS):
            print(f"\n{prediction.text}")
            for span in prediction.spans:
                print(f"  {span.start:3}-{span.end:<3} {span.label:<5} {span.probability:.2f}  {span.text}")


if __name__ == "__main__":
    main()
