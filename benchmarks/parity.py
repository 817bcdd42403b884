"""elmokit beside AllenNLP 2.10.1: the same random weights and odd text, the largest difference of any number.

    python benchmarks/parity.py

AllenNLP runs in an environment of its own (`peers/`). Its hidden state is cleared before each call unless a
column says that it is carried. Exit status 1 if a difference exceeds 1e-5.
"""

import logging
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.utils.rnn import pad_sequence

import elmokit
from common import SHAPES, markdown_table, random_model, write_hdf5
from elmokit.formats import ModelBundle
from elmokit.model import BiLM, BiLMConfig, CharCNNConfig, ScalarMix
from elmokit.text import character_matrix, used_characters
from peers import Peer

TOLERANCE = 1e-5
Floats = npt.NDArray[np.float32]
Batches = list[list[list[str]]]

ODD_TEXT = [
    ["The", "cat", "sat", "on", "the", "mat", "."],
    ["one"],
    ["", "an", "empty", "string", ""],
    ["x" * 200, "é" * 100, "€" * 20, "\U0001f600" * 13],  # more than 48 bytes, cut inside a character
    ["\U0001f642", "\U0001f469\u200d\U0001f469\u200d\U0001f467", "!"],  # emoji, one of them joined of three
    ["\ud800", "a\udfffb", "lone", "surrogates"],
    ["我", "爱", "自然语言处理", "。"],
    ["zero\u200bwidth", "\u200b", "\ufeff", "\u00a0", " ", "\t", "\n", "\x00"],
    ["<S>", "typed", "</S>", "<s>", "<UNK>"],
    [f"w{number}" for number in range(120)],
    ["again"] * 30,
    ["The", "cat", "sat", "on", "the", "mat", "."],  # a sentence that was there before
]
GAMMA = 1.3


def toy(num_layers: int, activation: str, num_highway: int, clips: tuple[float, float] | None) -> BiLMConfig:
    """A small model of odd sizes."""
    return BiLMConfig(
        encoder=CharCNNConfig(
            filters=((1, 6), (2, 10), (3, 20), (5, 7)),
            embedding_dim=9,
            activation=activation,  # type: ignore[arg-type]
            num_highway=num_highway,
        ),
        cell_dim=38,
        projection_dim=21,
        num_layers=num_layers,
        cell_clip=clips[0] if clips else None,
        projection_clip=clips[1] if clips else None,
        skip_connections=True,
    )


# Clips are made active by low limits, not by large weights: those make an LSTM chaotic, so that two correct
# programs drift apart from their last bit within a sentence.
CASES = {
    "1 layer, relu, 1 highway, no clips": toy(1, "relu", 1, None),
    "1 layer, tanh, 2 highways, clips 0.3, 0.2": toy(1, "tanh", 2, (0.3, 0.2)),
    "2 layers, tanh, 1 highway, clips 3, 3": toy(2, "tanh", 1, (3.0, 3.0)),
    "2 layers, relu, no highway, clips 0.2, 0.1": toy(2, "relu", 0, (0.2, 0.1)),
    "3 layers, relu, 2 highways, clips 0.5, 0.2": toy(3, "relu", 2, (0.5, 0.2)),
    "3 layers, tanh, 1 highway, no clips": toy(3, "tanh", 1, None),
    "small shape": SHAPES["small"],
    "small shape, clips 0.5, 0.2": replace(SHAPES["small"], cell_clip=0.5, projection_clip=0.2),
    "original shape": SHAPES["original"],
}


class Theirs:
    """AllenNLP's numbers for a model."""

    def __init__(self, peer: Peer, files: dict[str, str], folder: Path) -> None:
        self._peer, self._out = peer, folder / "theirs.npz"
        peer.ask("load", **files)

    def layers(self, batches: Batches, *, reset: bool) -> list[Floats]:
        """(L+1, T+2, 2P) of every sentence."""
        self._peer.ask("layers", batches=batches, reset=reset, out=str(self._out))
        return self._read()

    def mixed(self, batches: Batches, weights: list[float], *, layer_norm: bool) -> list[Floats]:
        """(T, 2P) of every sentence."""
        self._peer.ask(
            "mixed", batches=batches, weights=weights, gamma=GAMMA, layer_norm=layer_norm, out=str(self._out)
        )
        return self._read()

    def _read(self) -> list[Floats]:
        with np.load(self._out) as arrays:
            return [arrays[name] for name in arrays.files]


def compare(peer: Peer, config: BiLMConfig, folder: Path) -> dict[str, str | float]:
    """How often the model clips, and the largest difference in each way of calling."""
    bundle = random_model(config)
    files = write_hdf5(bundle, folder / "model")
    theirs = Theirs(peer, files, folder)
    ours = elmokit.load(files["options"], files["weights"])
    stateful = elmokit.load(files["options"], files["weights"], stateful=True)
    weights = np.linspace(-0.4, 0.9, config.num_layers + 1).round(3).tolist()
    mix, mix_of_normed = (
        ScalarMix(config.num_layers + 1, weights=weights, gamma=GAMMA, layer_norm=norm)
        for norm in (None, "allennlp")
    )

    alone = [[sentence] for sentence in ODD_TEXT]
    together = [[*ODD_TEXT, []]]  # AllenNLP takes an empty sentence only beside others
    growing_and_shrinking = [
        (ODD_TEXT * 2)[start : start + size] for start, size in enumerate((3, 9, 2, 12, 1, 5))
    ]
    in_batch = [whole(sentence) for sentence in ours.embed(together[0])]
    return {
        "cells, states at a clip": _at_clip(ours.bundle.model, config),
        "alone": largest([whole(ours.embed(one)[0]) for one in alone], theirs.layers(alone, reset=True)),
        "one batch": largest(in_batch, theirs.layers(together, reset=True)),
        "state carried": largest(
            [whole(sentence) for batch in growing_and_shrinking for sentence in stateful.embed(batch)],
            theirs.layers(growing_and_shrinking, reset=False),
        ),
        "mix": largest(_mixed(bundle, mix), theirs.mixed(alone, weights, layer_norm=False)),
        "mix, layer norm": largest(
            _mixed(bundle, mix_of_normed), theirs.mixed(alone, weights, layer_norm=True)
        ),
        "… in a batch": largest(
            _mixed_in_batch(in_batch, mix_of_normed), theirs.mixed(together, weights, layer_norm=True)
        ),
    }


def whole(sentence: elmokit.Sentence) -> Floats:
    """(L+1, T+2, 2P): the sentence's layers between its boundaries'."""
    begin, end = np.split(sentence.boundaries, 2, axis=1)
    return np.concatenate([begin, sentence.layers, end], axis=1)


def _mixed(bundle: ModelBundle, mix: ScalarMix) -> list[Floats]:
    """(T, 2P) of each sentence as an embedder mixes it."""
    return [sentence.vectors for sentence in elmokit.Embedder(bundle, mix=mix).embed(ODD_TEXT)]


@torch.no_grad()
def _mixed_in_batch(sentences: Sequence[Floats], mix: ScalarMix) -> list[Floats]:
    """(T, 2P) of each sentence when a padded batch is mixed as one: all share the layer norm's statistics."""
    padded = pad_sequence([torch.from_numpy(s).transpose(0, 1) for s in sentences], batch_first=True)
    lengths = torch.tensor([s.shape[1] for s in sentences])  # (B,)
    counted = torch.arange(padded.shape[1]) < lengths[:, None]  # (B, T+2)
    vectors = mix(padded.permute(2, 0, 1, 3), counted)  # (B, T+2, 2P)
    return [row[1 : n - 1].numpy() for row, n in zip(vectors, lengths.tolist(), strict=True)]


@torch.no_grad()
def _at_clip(model: BiLM, config: BiLMConfig) -> str:
    """The shares of the cells and of the projected states that stand at a clip at the sentences' ends."""
    if config.cell_clip is None or config.projection_clip is None:
        return "no clips"
    tokens = [token for sentence in ODD_TEXT for token in sentence]
    matrix = character_matrix(tokens, max_characters=50)
    x = model.encoder(torch.from_numpy(matrix), torch.from_numpy(used_characters(matrix)))  # (S, P)
    _, ends = model(x, torch.tensor([len(sentence) for sentence in ODD_TEXT]))
    cells = torch.cat([end.cell.abs() for end in ends]) >= config.cell_clip
    states = torch.cat([end.hidden.abs() for end in ends]) >= config.projection_clip
    return f"{cells.float().mean():.1%}, {states.float().mean():.1%}"


def largest(ours: Sequence[Floats], theirs: Sequence[Floats]) -> float:
    """The largest difference of any number; shapes must be the same."""
    pairs = list(zip(ours, theirs, strict=True))
    assert all(a.shape == b.shape for a, b in pairs), [(a.shape, b.shape) for a, b in pairs]
    return max(float(np.abs(a - b).max(initial=0.0)) for a, b in pairs)


def main() -> None:
    """Print the table."""
    logging.getLogger("elmokit").setLevel(logging.ERROR)  # words too long for the model are meant here
    rows = {}
    with Peer("allennlp") as peer:
        for name, config in CASES.items():
            with TemporaryDirectory() as folder:
                rows[name] = compare(peer, config, Path(folder))
    header = ["model", *next(iter(rows.values()))]
    print(f"\nLargest difference from AllenNLP 2.10.1 over {len(ODD_TEXT)} sentences of odd text\n")
    print(markdown_table(header, ([name, *row.values()] for name, row in rows.items())))
    worst = max(value for row in rows.values() for value in row.values() if isinstance(value, float))
    print(f"\nlargest of all {worst:.2g}, allowed {TOLERANCE:g}")
    sys.exit(not worst <= TOLERANCE)


if __name__ == "__main__":
    main()
