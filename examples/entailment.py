"""Entailment: does the first sentence say that the second is true?  In English (SNLI) and in Chinese (OCNLI).

ELMOKIT_DATA=… python examples/entailment.py [ENGLISH [CHINESE]]      encoders, "en" and "zh" when not given
"""

import os
import sys
import tempfile
from pathlib import Path

from elmokit import load_task, task_settings, train

ENGLISH = [
    ("A man is sleeping on a bench in the park.", "A person is outside."),
    ("A man is sleeping on a bench in the park.", "A man is playing football."),
    ("A man is sleeping on a bench in the park.", "The man is waiting for a friend."),
]
CHINESE = [
    ("外贸经营权进一步放开", "外贸经营权没有任何变化"),
    ("身上裹一件工厂发的棉大衣,手插在袖筒里", "身上至少一件衣服"),
]


def main() -> None:
    """Train one model for each language, on a part of the data; print accuracies and predictions."""
    data = Path(os.environ["ELMOKIT_DATA"], "tasks")
    encoders = dict(enumerate(sys.argv[1:]))
    runs = [
        (data / "nli-snli", f"chars+{encoders.get(0, 'en')}", ENGLISH),
        (data / "nli-zh", f"words+{encoders.get(1, 'zh')}", CHINESE),
    ]
    for source, encoder, pairs in runs:
        settings = task_settings("entailment", ["training.share=0.3", "training.epochs=4"])
        with tempfile.TemporaryDirectory() as scratch:
            out = Path(scratch, "out")
            found = train("entailment", source, encoder=encoder, out=out, settings=settings, progress=True)
            print(f"{source.name}: dev accuracy {found.scores.value:.3f}")
            model = load_task(out)
        for prediction in model.predict(pairs):
            probability = prediction.scores[prediction.label]
            print(f"  {prediction.label} ({probability:.2f})  {prediction.hypothesis}")
            for word, weights in zip(prediction.hypothesis_tokens, prediction.alignment, strict=True):
                best = max(range(len(weights)), key=weights.__getitem__)
                print(f"      {word} ← {prediction.premise_tokens[best]} ({weights[best]:.2f})")


if __name__ == "__main__":
    main()
