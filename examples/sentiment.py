"""Sentiment in English (films, five classes) and in Chinese (hotels, books and computers, two classes).

ELMOKIT_DATA=… python examples/sentiment.py [ENGLISH [CHINESE]]       encoders, "en" and "zh" when not given
"""

import os
import sys
import tempfile
from pathlib import Path

from elmokit import task_settings, train

ENGLISH = ["A warm, funny and wonderful film.", "Two hours of my life that I will never get back."]
CHINESE = ["房间很干净，服务也非常好。", "这本书太无聊了，看了一半就放下了。"]


def main() -> None:
    """Train one classifier for each language, on a part of the data; print accuracies and labels."""
    data = Path(os.environ["ELMOKIT_DATA"], "tasks")
    encoders = dict(enumerate(sys.argv[1:]))
    sst, chn = data / "sentiment-sst5", data / "sentiment-chnsenticorp"
    runs = [
        (sst / "sentences-train.tsv.xz", sst / "sentences-dev.tsv", encoders.get(0, "en"), 0.5, ENGLISH),
        (chn, None, encoders.get(1, "zh"), 0.1, CHINESE),
    ]
    for source, dev, encoder, share, texts in runs:
        settings = task_settings("classifier", [f"training.share={share}", "training.epochs=6"])
        with tempfile.TemporaryDirectory() as scratch:
            found = train(
                "classifier", source, dev=dev, encoder=encoder, out=Path(scratch, "out"), settings=settings,
                progress=True,
            )  # fmt: skip
        low, high = found.scores.interval
        print(f"{source.name}: dev accuracy {found.scores.value:.3f}, 95 % within {low:.3f} and {high:.3f}")
        for prediction in found.model.predict(texts):
            print(f"  {prediction.label} ({prediction.scores[prediction.labels[0]]:.2f})  {prediction.text}")


if __name__ == "__main__":
    main()
