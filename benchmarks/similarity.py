"""Sentence vectors without labels: STS-B (en), AFQMC (zh), and senses in pairs of sentences (MCL-WiC).

    python benchmarks/similarity.py en            # every pooling, and GloVe's mean beside it
    python benchmarks/similarity.py en --minilm   # and MiniLM-L6
    python benchmarks/similarity.py en --choose   # the grid that the settings of fit_pooling were chosen from

Spearman's correlation, times 100, of the cosine with the score. Settings were chosen on train.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

import elmokit
from common import data_file, markdown_table, model_parser, percent, report
from elmokit.embed import Pooler, SentencePooling
from elmokit.encoders import open_encoder
from elmokit.model import fit_statistics
from elmokit.text import read_lines
from fit_pooling import PLANS, sentences
from minilm_search import MiniLM

Floats = npt.NDArray[np.float32]
POOLINGS: tuple[SentencePooling, ...] = ("mean", "max", "ends", "sif", "whitened")
FEWER = (192, 96, 48)
_LANGUAGES = {"rules": "en", "characters": "zh"}  # by the tokenizer of a bundled model


@dataclass(frozen=True)
class Pairs:
    """Pairs of sentences and how alike people found them."""

    first: list[str]
    second: list[str]
    scores: Floats

    def spearman(self, vectors: Floats) -> float:
        """100 times the rank correlation, given the vectors of all first sentences, then all second ones."""
        unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        cosines = (unit[: len(self.scores)] * unit[len(self.scores) :]).sum(axis=1)
        a, b = _ranks(cosines), _ranks(self.scores)
        return round(100 * float(np.corrcoef(a, b)[0, 1]), 2)

    @property
    def texts(self) -> list[str]:
        """All first sentences, then all second ones."""
        return self.first + self.second


def _ranks(values: Floats) -> npt.NDArray[np.float64]:
    """Ranks; equal values have the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: npt.NDArray[np.float64] = ((ends - counts + 1 + ends) / 2)[place]
    return ranks


def lines_of(path: Path) -> Iterator[list[str]]:
    """The rows of a file with tabs, packed or not."""
    for line in read_lines(path):
        yield line.split("\t")


def read_pairs(language: str) -> dict[str, Pairs]:
    """STS-B for English, AFQMC for Chinese: train and dev."""
    if language == "en":
        names = {"train": "tasks/sts-b/sts-train.csv.xz", "dev": "tasks/sts-b/sts-dev.csv"}
        columns, skip, source = (4, 5, 6), 0, "STS-B as published"
    else:
        names = {"train": "tasks/pairs-afqmc-zh/train.tsv.xz", "dev": "tasks/pairs-afqmc-zh/dev.tsv"}
        columns, skip, source = (0, 1, 2), 1, "AFQMC: label, text_a, text_b"
    found = {}
    for part, name in names.items():
        rows = list(itertools.islice(lines_of(data_file(name, source)), skip, 8000))
        score, first, second = ([row[column] for row in rows] for column in columns)
        found[part] = Pairs(first, second, np.array(score, np.float32))
    return found


def pooled(elmo: elmokit.Embedder, texts: list[str]) -> dict[str, Floats]:
    """The vectors of texts by every pooling, and the first numbers of whitened ones."""
    poolers: dict[str, Pooler] = {name: Pooler.of(elmo, name, None) for name in POOLINGS}
    for dim in FEWER:
        poolers[f"whitened, {dim} numbers"] = Pooler.of(elmo, "whitened", None, dim)
    found: dict[str, list[Floats]] = {name: [] for name in poolers}
    for sentence in elmo.stream(texts, copy=False):
        for name, pool in poolers.items():
            found[name].append(pool(sentence))
    return {name: np.stack(vectors) for name, vectors in found.items()}


def static(pairs: Pairs, language: str, tokenize: elmokit.Embedder) -> float:
    """The mean of static vectors: GloVe of words, or skip-gram of characters."""
    name = "glove-100d-tasks.txt.xz" if language == "en" else "zh-char-100d.txt.xz"
    encoder = open_encoder(f"glove:{data_file(f'vectors/{name}', 'word vectors as text')}")
    tokens = [sentence.tokens for sentence in tokenize.stream(pairs.texts, copy=False)]
    lower = [[token.lower() for token in words] for words in tokens]
    means = [
        one[0].numpy().mean(axis=0) if one.shape[1] else np.zeros(encoder.dim, np.float32)
        for one in encoder.encode(lower)
    ]
    return pairs.spearman(np.stack(means).astype(np.float32))


def wic(elmo: elmokit.Embedder) -> dict[str, float]:
    """Accuracy of "same sense" on MCL-WiC: a threshold of the two uses' cosine, fitted on train."""
    cosines: dict[str, Floats] = {}
    gold = {}
    for part in ("train", "dev"):
        rows = list(lines_of(data_file(f"tasks/wic/{part}.en-en.tsv.xz", "MCL-WiC, English")))[1:]
        a = _uses(elmo, [(row[8], int(row[3]), int(row[4])) for row in rows])
        b = _uses(elmo, [(row[9], int(row[5]), int(row[6])) for row in rows])
        norms = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
        cosines[part] = (a * b).sum(axis=-1) / np.maximum(norms, 1e-12)
        gold[part] = np.array([row[7] == "T" for row in rows])
    found = {}
    for layer in range(elmo.num_layers):
        limits = np.quantile(cosines["train"][:, layer], np.linspace(0, 1, 201))
        right = [((cosines["train"][:, layer] >= limit) == gold["train"]).mean() for limit in limits]
        best = limits[int(np.argmax(right))]
        accuracy = float(((cosines["dev"][:, layer] >= best) == gold["dev"]).mean())
        found[f"layer {layer}"] = percent(accuracy)
    return found


def _uses(elmo: elmokit.Embedder, places: list[tuple[str, int, int]]) -> Floats:
    """The vectors of words at each layer, (n, layers, D), given their sentences and places."""
    vectors = []
    for sentence, (_, start, end) in zip(elmo.stream(text for text, _, _ in places), places, strict=True):
        chosen = [at for at, (a, b) in enumerate(sentence.offsets) if a < end and b > start]
        vectors.append(sentence.layers[:, chosen or [0]].mean(axis=1))
    return np.stack(vectors)


def choose(elmo: elmokit.Embedder, language: str, train: Pairs) -> list[tuple[float, float, str, int, float]]:
    """Score every setting of the grid on train, best first."""
    plan = PLANS[language]
    text = [one for file, number in plan.files.items() for one in sentences(file, number, language)]
    found = []
    grid = [(1, 0, 0), (1, 0.3, 0.3), (1, 0.5, 0.5), (1, 0.3, 0), (1, 0, 0.5), (1, 1, 1), (0, 1, 1)]
    for smoothing in (10, 1e-3, 3e-4, 1e-4):
        fitted = elmokit.fit_pooling(elmo, text, smoothing=smoothing, progress=True)
        of_text = [fitted.means_of(one.tokens, one.layers) for one in elmo.stream(text, copy=False)]
        of_train = [fitted.means_of(one.tokens, one.layers) for one in elmo.stream(train.texts, copy=False)]
        means, asked = np.stack(of_text), np.stack(of_train)
        for weights, axes, whitening in itertools.product(grid, (96, 192), (0, 0.5, 1)):
            one = fit_statistics(
                fitted.words,
                fitted.weights,
                means,
                layer_weights=weights,
                num_axes=axes,
                whitening=whitening,
            )
            found.append((train.spearman(one.whitened(asked)), smoothing, str(weights), axes, whitening))
    return sorted(found, reverse=True)


def main() -> None:
    """Measure, print, write."""
    parser = model_parser(__doc__)
    parser.add_argument("--minilm", action="store_true", help="MiniLM-L6 beside it")
    parser.add_argument("--choose", action="store_true", help="only the grid of settings, on train")
    parser.add_argument("--wic", action="store_true", help="MCL-WiC, too (English)")
    arguments = parser.parse_args()
    elmo = elmokit.load(arguments.model, precision=arguments.precision)
    language = elmo.tokenizer_spec.language or _LANGUAGES[elmo.tokenizer_spec.name]
    pairs = read_pairs(language)
    if arguments.choose:
        rows = choose(elmo, language, pairs["train"])
        print(
            markdown_table(
                ["Spearman on train", "smoothing", "layer weights", "axes", "whitening"], rows[:20]
            )
        )
        return
    scores: dict[str, dict[str, float]] = {}
    for part, one in pairs.items():
        for name, vectors in pooled(elmo, one.texts).items():
            scores.setdefault(name, {})[part] = one.spearman(vectors)
        scores.setdefault("static vectors, mean", {})[part] = static(one, language, elmo)
    if arguments.minilm:
        scores["MiniLM-L6"] = {"dev": pairs["dev"].spearman(MiniLM().encode(pairs["dev"].texts))}
    rows = [(name, of.get("train", "–"), of["dev"]) for name, of in scores.items()]
    text = markdown_table(["pooling", "train", "dev"], rows)
    result: dict[str, object] = {"data": "STS-B" if language == "en" else "AFQMC", "Spearman": scores}
    if arguments.wic:
        result["MCL-WiC dev accuracy"] = senses = wic(elmo)
        text += f"\n\nMCL-WiC dev, accuracy: {senses}"
    report("similarity", arguments, text, result)


if __name__ == "__main__":
    main()
