"""Reading comprehension: answers from a passage, in English (SQuAD) and in Chinese (CMRC 2018, by character).

ELMOKIT_DATA=… python examples/reading.py [ENGLISH [CHINESE]]         encoders, "en" and "zh" when not given
"""

import os
import sys
import tempfile
from pathlib import Path

from elmokit import task_settings, train

ENGLISH = "Ada Lovelace was born in London in 1815. She wrote a program for a machine by Charles Babbage."
CHINESE = "钱学森1911年生于上海，1935年前往美国学习，1955年回到中国。"
QUESTIONS = {
    ENGLISH: ["Where was Ada Lovelace born?", "Who built the machine?", "When was she born?"],
    CHINESE: ["钱学森是哪一年出生的？", "钱学森生于哪里？"],
}


def main() -> None:
    """Train one model for each language, on a part of the data; print scores and answers."""
    data = Path(os.environ["ELMOKIT_DATA"], "tasks")
    encoders = dict(enumerate(sys.argv[1:]))
    squad, cmrc = data / "qa-squad1", data / "qa-cmrc2018"
    runs = [
        (squad / "squad1.1-partial.json.xz", squad / "xquad.en.json.xz", "chars+", "en", 0.5, ENGLISH),
        (cmrc / "train.json.xz", cmrc / "trial.json", "words+", "zh", 0.2, CHINESE),
    ]
    for number, (source, dev, beside, name, share, passage) in enumerate(runs):
        settings = task_settings("reading", [f"training.share={share}", "training.epochs=4"])
        encoder = beside + encoders.get(number, name)
        with tempfile.TemporaryDirectory() as scratch:
            found = train(
                "reading", source, dev=dev, encoder=encoder, out=Path(scratch, "out"), settings=settings,
                progress=True,
            )  # fmt: skip
        values = found.scores.values
        print(f"{source.name}: dev F1 {values['f1']:.3f}, exact {values['exact_match']:.3f}")
        for prediction in found.model.predict([(question, passage) for question in QUESTIONS[passage]]):
            answer = prediction.answer
            place = f"{answer.start}-{answer.end}"
            print(f"  {prediction.question}  {answer.text} ({answer.probability:.2f}, {place})")


if __name__ == "__main__":
    main()
