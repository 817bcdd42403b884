"""Translation with attention: English to German (Multi30k), and Chinese to English (Tatoeba).

ELMOKIT_DATA=… python examples/translation.py [SHARE]         of the training data, 0.1 when not given
"""

import os
import sys
import tempfile
from pathlib import Path

from elmokit import task_settings, train

ENGLISH = ["A man is sleeping on a bench.", "Two dogs are playing in the snow."]
CHINESE = ["我不知道。", "他是我的朋友。"]


def main() -> None:
    """Train a model for each direction; print BLEU, translations, and what each piece attended to."""
    data = Path(os.environ["ELMOKIT_DATA"], "tasks")
    share = float(sys.argv[1]) if len(sys.argv) > 1 else 0.1
    runs = [
        (data / "translation-multi30k", "words+en", ("en", "de"), ENGLISH),
        (data / "translation-tatoeba-zh", "words+zh", ("2", "1"), CHINESE),
    ]
    for source, encoder, (text, label), sentences in runs:
        settings = task_settings("translate", [f"training.share={share}", "head.copy=true"])
        with tempfile.TemporaryDirectory() as scratch:
            found = train(
                "translate", source, text_column=text, label_column=label, encoder=encoder,
                out=Path(scratch, "out"), settings=settings, progress=True,
            )  # fmt: skip
        values = found.scores.values
        print(f"{source.name}: dev BLEU {100 * values['bleu']:.1f}, chrF {100 * values['chrf']:.1f}")
        for prediction in found.model.predict(sentences):
            print(f"{prediction.source}\n{prediction.table()}")


if __name__ == "__main__":
    main()
