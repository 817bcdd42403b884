"""Fit the sentence vectors of the bundled models, on the text that they were trained on.

    python benchmarks/fit_pooling.py en zh

Writes pooling.safetensors into the folder of each model. The text has no labels; the settings were chosen by
benchmarks/similarity.py on STS-B train and on AFQMC train.
"""

import argparse
import lzma
import random
from dataclasses import dataclass

import elmokit
from common import data_file
from elmokit.formats import find_model
from elmokit.text import split_sentences

SEED = 0
TAKEN = 0.03  # of the lines


@dataclass(frozen=True)
class Plan:
    """The text, how many sentences of each file, and the settings of `fit_pooling`."""

    files: dict[str, int]
    smoothing: float
    layer_weights: tuple[float, ...] | None = None
    whitening: float = 1.0


PLANS = {
    "en": Plan({"en-wikipedia": 9000, "en-news": 9000, "en-talk": 6000}, 3e-4),
    "zh": Plan({"zh-wikipedia": 9000, "zh-more": 9000}, 10, (1, 1, 1), 0),
}


def sentences(name: str, number: int, language: str) -> list[str]:
    """Draw sentences of 10 to 400 characters from a file of raw text."""
    draw = random.Random(SEED)
    path = data_file(f"lm/{name}.txt.xz", "raw text, a paragraph a line")
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        drawn = [line.strip() for line in lines if draw.random() < TAKEN]
    draw.shuffle(drawn)
    found: list[str] = []
    for line in drawn:
        spans = split_sentences(line, language)
        found += [line[start:end] for start, end in spans if 10 < end - start < 400]
        if len(found) >= number:
            break
    return found[:number]


def main() -> None:
    """Fit and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="+", choices=PLANS)
    for name in parser.parse_args().models:
        plan = PLANS[name]
        text = [one for file, number in plan.files.items() for one in sentences(file, number, name)]
        elmo = elmokit.load(name)
        fitted = elmokit.fit_pooling(
            elmo,
            text,
            smoothing=plan.smoothing,
            layer_weights=plan.layer_weights,
            whitening=plan.whitening,
            progress=True,
        )
        elmokit.store_pooling(elmo, fitted, find_model(name))
        print(f"{name}: fitted on {len(text):,} sentences, vectors of {fitted.dim} numbers")


if __name__ == "__main__":
    main()
