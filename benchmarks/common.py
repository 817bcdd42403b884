"""What the benchmarks share: models of random weights, sentences, and how results are shown."""

import lzma
import math
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch

from elmokit.formats import ModelBundle, save_model
from elmokit.model import BiLM, BiLMConfig, CharCNNConfig
from elmokit.text import TokenizerSpec

PUBLISHED_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))


def published_shape(cell_dim: int, projection_dim: int, num_highway: int) -> BiLMConfig:
    """One of the shapes that the English models were published in."""
    return BiLMConfig(
        encoder=CharCNNConfig(filters=PUBLISHED_FILTERS, embedding_dim=16, num_highway=num_highway),
        cell_dim=cell_dim,
        projection_dim=projection_dim,
        num_layers=2,
        cell_clip=3.0,
        projection_clip=3.0,
        skip_connections=True,
    )


SHAPES = {"original": published_shape(4096, 512, 2), "small": published_shape(1024, 128, 1)}


@torch.no_grad()
def random_model(config: BiLMConfig, *, seed: int = 0) -> ModelBundle:
    """Normal weights with variance 1 / (numbers that enter a sum), biases uniform in ± 0.1."""
    generator = torch.Generator().manual_seed(seed)
    model = BiLM(config).eval()
    for name, weight in model.named_parameters():
        if weight.dim() == 1 or name.endswith("bias"):
            weight.uniform_(-0.1, 0.1, generator=generator)
            continue
        if name.startswith("layers."):  # (2, out, in)
            entering = weight.shape[-1]
        else:
            entering = 1 if "embedding" in name else math.prod(weight.shape[1:])
        weight.normal_(0.0, entering**-0.5, generator=generator)
    return ModelBundle(model=model, tokenizer=TokenizerSpec(name="whitespace"), source="random weights")


def write_hdf5(bundle: ModelBundle, folder: Path) -> dict[str, str]:
    """Write a model as the originals read it; the two files by the names that loaders use."""
    save_model(bundle, folder, format="hdf5")
    return {"options": str(folder / "options.json"), "weights": str(folder / "weights.hdf5")}


def data_file(name: str, source: str) -> Path:
    """A file of the data folder, or the end of the program with a word on where the data come from."""
    folder = os.environ.get("ELMOKIT_DATA")
    path = Path(folder or ".") / name
    if folder is None or not path.is_file():
        problem = "is not set" if folder is None else f"has no {name}"
        sys.exit(f"ELMOKIT_DATA {problem}: set it to a folder with {name}, {source}")
    return path


def wikitext_sentences(num_tokens: int) -> list[list[str]]:
    """The first ordinary sentences (3 to 80 tokens) of WikiText-2's validation text, of so many tokens."""
    path = data_file(
        "lm/wikitext-2/valid.txt.xz", "the validation text of WikiText-2 (wiki.valid.tokens), by xz"
    )
    sentences: list[list[str]] = []
    found = 0
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith(" = "):  # a heading
                continue
            for part in line.strip().replace(" . ", " .\n").split("\n"):
                tokens = part.split()
                if 3 <= len(tokens) <= 80:
                    sentences.append(tokens)
                    found += len(tokens)
                if found >= num_tokens:
                    return sentences
    return sentences


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """The rows as a Markdown table; floats have three digits."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def _cell(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
