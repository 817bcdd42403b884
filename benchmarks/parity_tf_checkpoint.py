"""Checkpoints that TensorFlow itself wrote, read by elmokit without it: every weight to the bit.

    python benchmarks/parity_tf_checkpoint.py

TensorFlow 2.15 runs bilm-tf's training graph (as simple_elmo carries it on) in an environment of its own
(`peers/`) and saves it with its optimizer. Exit status 1 if a number differs.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from common import PUBLISHED_FILTERS, markdown_table
from elmokit.formats import load_model
from elmokit.formats.tf_checkpoint import TfCheckpoint
from peers import Peer

VOCABULARY = ["<S>", "</S>", "<UNK>", *(f"word{number}" for number in range(997))]


def options(dim: int, projection: int, layers: int, filters: Any, *, skip: bool = True) -> dict[str, Any]:  # noqa: ANN401
    """What bilm-tf's training writes as options.json."""
    return {
        "bidirectional": True,
        "char_cnn": {
            "activation": "relu",
            "embedding": {"dim": 16},
            "filters": filters,
            "max_characters_per_token": 50,
            "n_characters": 261,
            "n_highway": 2,
        },
        "dropout": 0.1,
        "lstm": {
            "cell_clip": 3,
            "dim": dim,
            "n_layers": layers,
            "proj_clip": 3,
            "projection_dim": projection,
            "use_skip_connections": skip,
        },
        "all_clip_norm_val": 10.0,
        "n_epochs": 10,
        "n_train_tokens": 1000,
        "batch_size": 4,
        "n_tokens_vocab": len(VOCABULARY),
        "unroll_steps": 5,
        "n_negative_samples_batch": 64,
    }


SMALL = [[1, 4], [2, 8], [3, 16]]
CASES = {
    "two layers": options(32, 8, 2, SMALL),
    "one layer": options(32, 8, 1, SMALL, skip=False),
    "small shape": options(1024, 128, 2, PUBLISHED_FILTERS),
}


def compare(peer: Peer, settings: dict[str, Any], folder: Path) -> list[int]:
    """How many variables there are, and how many of them and of the model's tensors differ."""
    model = folder / "model"
    model.mkdir()
    peer.ask("write_checkpoint", folder=str(model), options=settings, vocabulary=VOCABULARY, seed=1)
    prefix, out = model / "model.ckpt-2500", folder / "theirs.npz"
    peer.ask("variables", prefix=str(prefix), out=str(out))
    ours = TfCheckpoint(prefix.with_name(prefix.name + ".index"))
    with np.load(out) as file:
        theirs = {name.replace("|", "/"): file[name] for name in file.files}
    assert {name: array.shape for name, array in theirs.items()} == ours.shapes()
    floats = [name for name, array in theirs.items() if array.dtype == np.float32]
    different = sum(not np.array_equal(ours.read(name).numpy(), theirs[name]) for name in floats)
    bundle = load_model(model)  # takes the later one
    assert bundle.softmax is not None
    softmax = bundle.softmax.read()
    same = [
        torch.equal(softmax.weight, torch.from_numpy(theirs["lm/softmax/W"])),
        torch.equal(softmax.bias, torch.from_numpy(theirs["lm/softmax/b"])),
        np.array_equal(bundle.model.encoder.embedding.weight.detach(), theirs["lm/char_embed"]),
    ]
    return [len(theirs), len(floats), different + same.count(False)]


def main() -> None:
    """Print the table."""
    rows: list[list[Any]] = []
    with Peer("simple_elmo") as peer:
        for name, settings in CASES.items():
            with TemporaryDirectory() as folder:
                rows.append([name, *compare(peer, settings, Path(folder))])
    print("\nCheckpoints of TensorFlow 2.15 read by elmokit\n")
    print(markdown_table(["model", "variables", "of float32", "that differ"], rows))
    sys.exit(any(row[-1] for row in rows))


if __name__ == "__main__":
    main()
