"""The same trainings by two versions of the code: do losses agree to the bit, and scores seed by seed?

ELMOKIT_DATA=… python benchmarks/two_versions.py --before PYTHON:SRC --after PYTHON:SRC [--epochs 5] …

PYTHON is an interpreter with the dependencies of that version, SRC its source folder. Both versions pretrain
a tiny biLM (WikiText-2; torch and one thread, so that rounding is the same), then train a classifier (TREC)
and a tagger (WNUT-17) with the bundled English model beside static vectors and a character CNN, with a few
epochs and otherwise the default settings. Prints a line and a table; finished runs are not repeated.
"""

import argparse
import json
import lzma
import os
import statistics
import subprocess
from pathlib import Path
from typing import Any

from common import data_file, markdown_table

# name → the arguments of `elmokit train`, and the score that is shown
ROWS = {
    "question-trec": (["classifier", "question-trec/train_5500.label.xz", "--format", "trec"], "accuracy"),
    "ner-wnut17": (["tagger", "ner-wnut17"], "f1"),
}
VERSIONS = ("before", "after")


def call(source: str, *words: str, **environment: str) -> None:
    """Run a command of one version."""
    python, _, src = source.partition(":")
    command = [python, "-c", "from elmokit.cli import main; main()", *words]
    subprocess.run(command, check=True, env=os.environ | environment | {"PYTHONPATH": src})


def pretrain(version: str, source: str, work: Path) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
    """Pretrain, unless that was done, and return the records of losses and the files of weights."""
    out, text, corpus = work / f"pretrain-{version}", work / "text.txt", work / f"corpus-{version}"
    if not (out / "model.safetensors").exists():
        whole = lzma.decompress(data_file("lm/wikitext-2/train.txt.xz", "WikiText-2").read_bytes()).decode()
        work.mkdir(parents=True, exist_ok=True)
        text.write_text("".join(whole.splitlines(keepends=True)[:4000]), encoding="utf-8")
        as_then = {"ELMOKIT_KERNEL": "torch", "OMP_NUM_THREADS": "1"}
        how = ("--tokenizer", "whitespace", "--lines", "--min-count", "2")
        call(source, "prepare", str(text), *how, "--out", str(corpus), "--quiet", **as_then)
        how = ("--size", "tiny", "--batch", "32", "--epochs", "1", "--seed", "1")
        call(source, "pretrain", str(corpus), *how, "--out", str(out), "--quiet", **as_then)
    lines = (out / "training" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    names = ("step", "tokens", "learning_rate", "gradient_norm", "sampled_loss")
    records = [{name: record[name] for name in names} for record in map(json.loads, lines)]
    return records, {path.name: path.read_bytes() for path in out.glob("*.safetensors")}


def compare_pretraining(arguments: argparse.Namespace) -> None:
    """Say whether both versions wrote the same losses and weights, to the bit."""
    found = [pretrain(one, getattr(arguments, one), Path(arguments.work)) for one in VERSIONS]
    (losses, weights), (other_losses, other_weights) = found
    print(
        f"pretraining, {losses[-1]['step']} steps: losses and gradient norms "
        f"{'the same to the bit' if losses == other_losses else 'DIFFER'} in {len(losses)} records, weights "
        f"{'the same to the bit' if weights == other_weights else 'DIFFER'} ({', '.join(sorted(weights))})"
    )


def run(version: str, source: str, name: str, seed: int, arguments: argparse.Namespace) -> float:
    """Train in a process of its own, unless that was done, and return the dev score in percent."""
    (task, data, *others), score = ROWS[name]
    vectors = data_file("vectors/glove-100d-tasks.txt.xz", "GloVe vectors of the tasks' words")
    out = Path(arguments.work) / f"{name}-{version}-{arguments.epochs}-{arguments.patience}-{seed}"
    scores = out / "scores.json"
    if not scores.exists():
        call(
            source,
            *("train", task, str(vectors.parent.parent / "tasks" / data), *others),
            *("--encoder", f"glove:{vectors}+chars+en", "--tokenizer", "whitespace", "--out", str(out)),
            *("--epochs", str(arguments.epochs), "--set", f"training.patience={arguments.patience}"),
            *("--seed", str(seed), "--overwrite", "--quiet"),
            *("--cache", f"{arguments.work}/cache-{version}"),
        )
    value: float = json.loads(scores.read_text(encoding="utf-8"))["values"][score]
    return 100 * value


def main() -> None:
    """Run what is missing, seed by seed, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for version in VERSIONS:
        parser.add_argument(f"--{version}", required=True, metavar="PYTHON:SRC")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--patience", type=int, default=4, help="more than --epochs: no early stopping")
    parser.add_argument("--seeds", type=int, default=3, help="0: compare pretraining only")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--work", default="out/two-versions", help="folder for the runs")
    arguments = parser.parse_args()
    compare_pretraining(arguments)
    if not arguments.seeds:
        return
    found: dict[tuple[str, str], list[float]] = {(name, version): [] for name in ROWS for version in VERSIONS}
    numbers = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    for seed in numbers:
        for (name, version), scores in found.items():
            scores.append(run(version, getattr(arguments, version), name, seed, arguments))
            print(f"{name}, {version}, seed {seed}: {scores[-1]:.2f}", flush=True)
    rows = [
        [
            name,
            ROWS[name][1],
            version,
            *(f"{score:.2f}" for score in scores),
            f"{statistics.fmean(scores):.2f} ± {statistics.stdev(scores):.2f}",
        ]
        for (name, version), scores in found.items()
    ]
    seeds = [f"seed {seed}" for seed in numbers]
    print(markdown_table(["data", "score", "code", *seeds, "mean ± sd"], rows))


if __name__ == "__main__":
    main()
