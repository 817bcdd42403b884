"""A model trained by `elmokit pretrain --recipe paper`, read by AllenNLP 2.10.1: the largest difference.

    python benchmarks/parity_pretrain.py [--size small] [--tokens 15360]

The recipe's own shape (original) takes a minute or two a step on two cores. Exit status 1 if a difference
exceeds 1e-5.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import elmokit
from common import wikitext_sentences
from parity import ODD_TEXT, TOLERANCE, Theirs, largest, whole
from peers import Peer


def main() -> None:
    """Train, embed with both, compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="small")
    parser.add_argument("--tokens", default="15360")
    arguments = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        text = (" ".join(sentence) for sentence in wikitext_sentences())
        (folder / "text.txt").write_text("\n".join(text) + "\n", encoding="utf-8")
        command = [sys.executable, "-c", "from elmokit.cli import main; main()", "pretrain", "text.txt"]
        command += ["--tokenizer", "whitespace", "--lines", "--recipe", "paper", "--size", arguments.size]
        subprocess.run(
            [*command, "--train-tokens", arguments.tokens, "--out", "model"], check=True, cwd=folder
        )
        written = folder / "model" / "hdf5"
        ours = elmokit.load(folder / "model")
        with Peer("allennlp") as peer:
            files = {"options": str(written / "options.json"), "weights": str(written / "weights.hdf5")}
            theirs = Theirs(peer, files, folder).layers([[sentence] for sentence in ODD_TEXT], reset=True)
        worst = largest([whole(sentence) for sentence in ours.embed(ODD_TEXT)], theirs)
    print(f"recipe paper, size {arguments.size}: largest difference {worst:.2g}, allowed {TOLERANCE:g}")
    sys.exit(not worst <= TOLERANCE)


if __name__ == "__main__":
    main()
