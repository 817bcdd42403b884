"""What `make demo` shows: contextual vectors layer by layer, and a text file turned into a file of vectors.

No trained model is bundled yet, so a small one is made on the spot with RANDOM weights. The machinery is the
real one (saved in the published format, loaded, embedded); the numbers mean nothing about language.
"""

import tempfile
from pathlib import Path

import h5py
import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import elmokit
from elmokit.embed_file import embed_file
from elmokit.formats import ModelBundle, save_model
from elmokit.model import BiLM, BiLMConfig, CharCNNConfig
from elmokit.text import default_spec

SENTENCES = [
    "The bank raised its rates.",
    "We sat on the bank of the river.",
    "The bank didn't lend $5.50 to anyone.",
    "银行提高了利率。",
]


def random_model(folder: Path) -> None:
    """Write a model of random weights in the layout of the published ones (options.json and HDF5)."""
    torch.manual_seed(1)
    encoder = CharCNNConfig(filters=((1, 32), (2, 32), (3, 64), (4, 128)), embedding_dim=16, num_highway=1)
    config = BiLMConfig(
        encoder=encoder, cell_dim=256, projection_dim=64, num_layers=2, cell_clip=3.0, projection_clip=3.0,
        skip_connections=True,
    )  # fmt: skip
    save_model(ModelBundle(BiLM(config), default_spec("en")), folder, format="hdf5")


def main() -> None:
    """Run the demonstration."""
    console = Console()
    with tempfile.TemporaryDirectory() as scratch:
        random_model(Path(scratch) / "model")
        elmo = elmokit.load(Path(scratch) / "model", tokenizer="rules:en")
        console.print(
            "[yellow]No trained model is bundled yet: the weights of this one are random.[/yellow]\n"
        )

        sentences = elmo.embed(SENTENCES)
        for sentence in sentences:
            shape = " × ".join(map(str, sentence.layers.shape))
            console.print(
                f"{sentence.text!r}\n  tokens {sentence.tokens}\n  layers {shape} (layers, tokens, numbers)"
            )

        table = Table(title="cosine of “bank” in sentence 1 with “bank” in …")
        for heading in ("layer", "sentence 1", "sentence 2", "sentence 3"):
            table.add_column(heading)
        uses = [s.layers[:, s.tokens.index("bank")] for s in sentences[:3]]  # (L+1, 2P) each
        for layer, name in enumerate(("0: the token alone", "1: LSTM", "2: LSTM")):
            first = uses[0][layer]
            cosines = [
                float(first @ u[layer] / np.linalg.norm(first) / np.linalg.norm(u[layer])) for u in uses
            ]
            table.add_row(name, *(f"{cosine:.3f}" for cosine in cosines))
        console.print(table)

        text, vectors = Path(scratch) / "text.txt", Path(scratch) / "vectors.h5"
        text.write_text("\n".join(SENTENCES * 250) + "\n", encoding="utf-8")
        console.print(f"elmokit embed text.txt vectors.h5: {embed_file(elmo, text, vectors)}")
        with h5py.File(vectors) as file:
            console.print(f"vectors.h5 holds {len(file) - 1:,} sentences; the first is {file['0'].shape}")


if __name__ == "__main__":
    main()
