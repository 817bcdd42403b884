"""`elmokit.compat.simple_elmo` and the softmax beside simple_elmo 0.9.2 on TensorFlow 2.15.

    python benchmarks/parity_simple_elmo.py

The original runs in an environment of its own (`peers/`). What it has from a state of zero is compared:
vectors without its warm-up, in one batch; sentence vectors of sentences of one length, because it counts
padding; of the substitutes those for the first word by the forward model and for the last by the backward
model, which it predicts from one neighbour, the boundary. Exit status 1 if a difference exceeds 1e-5, of
rounded logits 1e-4.
"""

import logging
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from common import SHAPES, markdown_table, random_model, write_hdf5
from elmokit.compat.simple_elmo import ElmoModel
from elmokit.model import BiLMConfig
from parity import TOLERANCE, toy
from parity_tf_checkpoint import SMALL, VOCABULARY, options
from peers import Peer

ROUNDED = 1e-4  # the original gives four decimals
RAGGED = [["The", "cat", "sat", "on", "the", "mat", "."], ["one"], ["x" * 80, "é" * 40, "自然", "", "\u200b"]]
EVEN = [["The", "cat", "sat"], ["one", "more", "."], ["x" * 80, "自然", "é"]]
TEXTS = ["word1 word2 unseen word3", "word5", "word7 word7 word9"]


def vectors(peer: Peer, config: BiLMConfig, folder: Path) -> dict[str, float]:
    """The largest differences of token and sentence vectors."""
    model = folder / "model"
    write_hdf5(random_model(config), model)
    ours = ElmoModel()
    ours.load(model)
    out = str(folder / "theirs.npz")
    differences = {}
    for layers in ("average", "top", "all"):
        for average, sentences in ((False, RAGGED), (True, EVEN)):
            if average and layers == "all":
                continue  # the original mixes layers and tokens
            settings = {"layers": layers, "warmup": False}
            peer.ask("embed", folder=str(model), sentences=sentences, average=average, out=out, **settings)
            with np.load(out) as file:
                theirs = file["arr_0"]
            method = ours.get_elmo_vector_average if average else ours.get_elmo_vectors
            answer = method(sentences, **settings)
            assert answer.shape == theirs.shape
            difference = np.abs(answer - theirs)
            if not average:  # its padding is not zero
                lengths = [len(sentence) for sentence in sentences]
                parts = [row[..., :n, :].max() for row, n in zip(difference, lengths, strict=True)]
                difference = np.array(parts)
            name = f"{layers}, of sentences" if average else layers
            differences[name] = float(difference.max())
    return differences


def substitutes(peer: Peer, folder: Path) -> float:
    """The largest difference of logits between words; the candidates must be the same."""
    model = folder / "run"
    model.mkdir()
    peer.ask(
        "write_checkpoint", folder=str(model), options=options(32, 8, 2, SMALL), vocabulary=VOCABULARY, seed=3
    )
    ours = ElmoModel()
    ours.load(model, full=True)
    theirs = peer.ask("substitutes", folder=str(model), sentences=TEXTS, topn=5)["answer"]
    worst = 0.0
    for sentence, other in zip(ours.get_elmo_substitutes(TEXTS, topn=5), theirs, strict=True):
        assert [word["word"] for word in sentence] == [word["word"] for word in other]
        for place, side in ((0, "forward"), (-1, "backward")):
            a, b = sentence[place][side], other[place][side]
            logits = dict(zip(b["candidates"], b["logp"], strict=True))
            assert set(a["candidates"]) == set(logits), (a, b)
            best = a["candidates"][0]  # logits and logarithms differ by one number for all words
            apart = [
                a["logp"][0] - log - (logits[best] - logits[row])
                for row, log in zip(a["candidates"], a["logp"], strict=True)
            ]
            worst = max(worst, *map(abs, apart))
    return worst


def main() -> None:
    """Print the table."""
    logging.getLogger("elmokit").setLevel(logging.ERROR)  # words too long for the model are meant here
    rows: list[list[Any]] = []
    with Peer("simple_elmo") as peer, TemporaryDirectory() as folder:
        for name, config in {"toy": toy(2, "relu", 1, (0.5, 0.3)), "small": SHAPES["small"]}.items():
            place = Path(folder, name)
            place.mkdir()
            rows += [[name, what, value] for what, value in vectors(peer, config, place).items()]
        rounded = substitutes(peer, Path(folder))
    print("\nLargest difference from simple_elmo 0.9.2\n")
    print(markdown_table(["model", "layers", "difference"], [*rows, ["toy", "substitutes", rounded]]))
    worst = max(row[-1] for row in rows)
    print(f"\nlargest of all {worst:.2g}, allowed {TOLERANCE:g}; substitutes, rounded, {rounded:.2g}")
    sys.exit(not (worst <= TOLERANCE and rounded <= ROUNDED))


if __name__ == "__main__":
    main()
