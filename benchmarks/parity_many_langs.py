"""elmokit beside ELMoForManyLangs 0.0.4.post2: folders that it wrote, the vectors that it gives.

    python benchmarks/parity_many_langs.py

The original runs in an environment of its own (`peers/`). Its state is zero at each comparison: a new
`Embedder` of its own embeds all sentences as one batch. Its encoder "lstm" carries no state, but lets the
backward direction read padding: there each sentence is a batch. Exit status 1 if a difference exceeds 1e-5.
"""

import logging
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from common import PUBLISHED_FILTERS, markdown_table
from elmokit.compat.many_langs import Embedder
from peers import Peer

TOLERANCE = 1e-5
WORDS = ["the", "cat", "sat", "mat", ".", "的", "été", "x" * 48]
CHARACTERS = [*"abcdefghijklmnopqrstuvwxyzT.,é的我"]
SENTENCES = [
    ["The", "cat", "sat", "on", "the", "mat", "."],
    ["one"],
    ["x" * 48, "x" * 49, "é" * 80],  # 48 characters are read, and looked up
    ["我", "的", "自然语言处理", "。", "\U0001f600"],
    ["<bos>", "<eos>", "<S>", "<oov>", "<pad>", "", "the"],
    ["again"] * 40,
]


def network(
    dim: int, projection: int, layers: int, clips: tuple[float, float], name: str = "elmo", **token: object
) -> dict[str, Any]:
    """A network file."""
    encoder = {
        "name": name,
        "projection_dim": projection,
        "dim": dim,
        "n_layers": layers,
        "cell_clip": clips[0],
        "proj_clip": clips[1],
    }
    embedder = {"name": "cnn", "activation": "relu", "max_characters_per_token": 50, **token}
    return {"encoder": encoder, "token_embedder": embedder, "dropout": 0.1}


SMALL = {"filters": [[1, 4], [2, 6], [3, 10]], "n_highway": 2, "word_dim": 8, "char_dim": 6}
CASES = {
    "small": network(24, 12, 2, (3, 3), **SMALL),
    "small, tight clips": network(24, 12, 2, (0.2, 0.1), **SMALL),
    "three layers, one highway": network(24, 12, 3, (3, 3), **{**SMALL, "n_highway": 1}),
    "no word vectors": network(24, 12, 2, (3, 3), **{**SMALL, "word_dim": 0}),
    "lstm": network(24, 12, 2, (3, 3), "lstm", **SMALL),
    "lstm of three layers, no word vectors": network(24, 12, 3, (3, 3), "lstm", **{**SMALL, "word_dim": 0}),
    "lstm of the published size": network(
        4096, 512, 2, (3, 3), "lstm", filters=PUBLISHED_FILTERS, n_highway=2, word_dim=100, char_dim=50
    ),
    "as published": network(
        4096, 512, 2, (3, 3), filters=PUBLISHED_FILTERS, n_highway=2, word_dim=100, char_dim=50
    ),
}


def compare(peer: Peer, net: dict[str, Any], folder: Path) -> list[float]:
    """The largest difference for all layers, their average, and one of them."""
    model = folder / "model"
    model.mkdir()
    peer.ask("make", folder=str(model), network=net, words=WORDS, characters=CHARACTERS, seed=1)
    ours = Embedder(model)
    is_lstm = net["encoder"]["name"] == "lstm"
    # With "lstm" the original takes a layer's number for a token's.
    sentences = [one for one in SENTENCES if len(one) > 1] if is_lstm else SENTENCES
    differences = []
    for output_layer in (-2, -1, 1):
        out = str(folder / "theirs.npz")
        peer.ask(
            "embed",
            folder=str(model),
            sentences=sentences,
            output_layer=output_layer,
            out=out,
            batch_size=1 if is_lstm else None,
        )
        with np.load(out) as arrays:
            theirs = [arrays[name] for name in arrays.files]
        pairs = list(zip(ours.sents2elmo(sentences, output_layer), theirs, strict=True))
        assert all(a.shape == b.shape for a, b in pairs)
        differences.append(max(float(np.abs(a - b).max()) for a, b in pairs))
    return differences


def main() -> None:
    """Print the table."""
    logging.getLogger("elmokit").setLevel(logging.ERROR)  # words too long for the model are meant here
    rows: list[list[Any]] = []
    with Peer("many_langs") as peer:
        for name, net in CASES.items():
            with TemporaryDirectory() as folder:
                rows.append([name, *compare(peer, net, Path(folder))])
    print("\nLargest difference from ELMoForManyLangs 0.0.4.post2\n")
    print(markdown_table(["model", "all layers (-2)", "average (-1)", "layer 1"], rows))
    worst = max(value for row in rows for value in row if isinstance(value, float))
    print(f"\nlargest of all {worst:.2g}, allowed {TOLERANCE:g}")
    sys.exit(not worst <= TOLERANCE)


if __name__ == "__main__":
    main()
