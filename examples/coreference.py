"""Coreference: which words of a document mean the same person or thing.

ELMOKIT_DATA=… python examples/coreference.py [ENCODER]      "en" when not given
"""

import os
import sys
import tempfile
from pathlib import Path

from elmokit import CoreferenceModel, scores_text, task_settings, train

DOCUMENT = (
    "Ada Lovelace met Charles Babbage when she was seventeen. He showed her his machine. "
    "Lovelace described it in her notes, which Babbage admired."
)


def main() -> None:
    """Train on the first epochs of OntoGUM; print scores and clusters, and write them as HTML."""
    data = Path(os.environ["ELMOKIT_DATA"], "tasks", "coref-gum")
    encoder = f"chars+{sys.argv[1] if len(sys.argv) > 1 else 'en'}"
    settings = task_settings("coreference", ["training.epochs=6"])
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, "coreference")
        found = train("coreference", data, encoder=encoder, out=out, settings=settings, progress=True)
        model = CoreferenceModel.load(out)
    print(scores_text(found.scores))
    prediction = model.predict(DOCUMENT)
    print(f"\n{prediction.coloured() if sys.stdout.isatty() else prediction}\n\n{prediction.table()}")
    page = Path(tempfile.gettempdir(), "coreference.html")
    page.write_text(f"<meta charset=utf-8>{prediction.html()}", encoding="utf-8")


if __name__ == "__main__":
    main()
