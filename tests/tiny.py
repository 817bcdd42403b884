"""Tiny random models, in memory and as files.

The files are written here with nothing but h5py, json and zipfile after bilm-tf's layout, so that the
package's readers are held against the layout itself and not against the package's writers.
"""

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch

from elmokit.formats import ModelBundle, SoftmaxFile
from elmokit.model import BiLM, BiLMConfig, CharCNNConfig, Softmax, WordConfig
from elmokit.text import TokenizerSpec, Vocabulary

Arrays = dict[str, np.ndarray]

ENCODER_FIELDS = ("filters", "embedding_dim", "max_characters", "activation", "num_highway")
WORDS = ("<S>", "</S>", "<UNK>", "the", "cat", "sat", "bank", "river", "né", "中")


def tiny_config(*, words: int | None = None, char_projection: bool = True, **changes: Any) -> BiLMConfig:
    """A biLM of two layers, cell 5, projection 3, clips 3, skips on, one highway; `changes` to any of it.

    `words` asks for a table of that many word vectors in place of characters; fields of the character
    encoder are told apart by their names.
    """
    encoder: CharCNNConfig | WordConfig = CharCNNConfig(
        filters=((1, 2), (2, 3), (3, 4)), embedding_dim=4, num_highway=1
    )
    of_encoder = {name: changes.pop(name) for name in ENCODER_FIELDS if name in changes}
    if words is None:
        encoder = replace(encoder, projection=char_projection, **of_encoder)
    else:
        encoder = WordConfig(num_words=words)
    sizes = {"cell_dim": 5, "projection_dim": 3, "num_layers": 2, "skip_connections": True}
    return BiLMConfig(**{"encoder": encoder, "cell_clip": 3.0, "projection_clip": 3.0, **sizes, **changes})


def tiny_model(config: BiLMConfig | None = None, *, seed: int = 0, scale: float = 0.5) -> BiLM:
    """A model with every parameter drawn from a normal distribution; a scale near 2 makes the clips work."""
    model = BiLM(config or tiny_config())
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(scale * torch.randn(parameter.shape, generator=random))
    return model.eval()


def tiny_bundle(
    model: BiLM | None = None,
    *,
    tokenizer: str = "whitespace",
    vocabulary: bool = False,
    softmax: bool = False,
) -> ModelBundle:
    """A bundle around a model; with the words of `WORDS` and a softmax over them when asked for."""
    model = model or tiny_model()
    dim = model.config.projection_dim
    output = Softmax(torch.full((len(WORDS), dim), 0.25), torch.arange(len(WORDS), dtype=torch.float32))
    return ModelBundle(
        model=model,
        tokenizer=TokenizerSpec(name=tokenizer),
        vocabulary=Vocabulary(WORDS) if vocabulary else None,
        softmax=SoftmaxFile(len(WORDS), lambda: output) if softmax else None,
    )


def wide_bundle() -> ModelBundle:
    """A model whose sizes are multiples of 32, as those of all published models are.

    Wide enough that quantisation averages out, and without the odd last numbers of a row that vectorised
    operations compute apart, in the last bit.
    """
    config = tiny_config(cell_dim=64, projection_dim=32, filters=((1, 32), (2, 32), (3, 64)))
    return tiny_bundle(tiny_model(config, scale=0.2))


def tiny_arrays(config: BiLMConfig, *, seed: int = 0, scale: float = 0.5, one_cell: bool = False) -> Arrays:
    """Random contents of a weights file: every dataset by its name.

    Args:
        config: the sizes.
        seed, scale: of the normal distribution.
        one_cell: name the cells as bilm-tf's dumper does for a model of one layer.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    encoder, dim, cell = config.encoder, config.projection_dim, config.cell_dim
    if isinstance(encoder, CharCNNConfig):
        shapes["char_embed"] = (261, encoder.embedding_dim)
        for i, (width, number) in enumerate(encoder.filters):
            shapes[f"CNN/W_cnn_{i}"] = (1, width, encoder.embedding_dim, number)
            shapes[f"CNN/b_cnn_{i}"] = (number,)
        filters = encoder.num_filters
        for i in range(encoder.num_highway):
            for name in ("carry", "transform"):
                shapes[f"CNN_high_{i}/W_{name}"] = (filters, filters)
                shapes[f"CNN_high_{i}/b_{name}"] = (filters,)
        if encoder.projection:
            shapes["CNN_proj/W_proj"], shapes["CNN_proj/b_proj"] = (filters, dim), (dim,)
    else:
        shapes["embedding"] = (encoder.num_words, dim)
    for direction in range(2):
        for layer in range(config.num_layers):
            path = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            if one_cell:
                path = f"RNN_{direction}/RNN/LSTMCell"
            shapes[f"{path}/W_0"], shapes[f"{path}/B"] = (2 * dim, 4 * cell), (4 * cell,)
            if config.projection:
                shapes[f"{path}/W_P_0"] = (cell, dim)
    random = np.random.default_rng(seed)
    return {name: (scale * random.normal(size=shape)).astype(np.float32) for name, shape in shapes.items()}


def tiny_options(config: BiLMConfig, *, n_characters: int = 262) -> dict[str, Any]:
    """The options.json that goes with `tiny_arrays`."""
    options: dict[str, Any] = {
        "lstm": {
            "dim": config.cell_dim,
            "projection_dim": config.projection_dim,
            "n_layers": config.num_layers,
            "cell_clip": config.cell_clip,
            "proj_clip": config.projection_clip,
            "use_skip_connections": config.skip_connections,
        }
    }
    encoder = config.encoder
    if isinstance(encoder, CharCNNConfig):
        options["char_cnn"] = {
            "n_characters": n_characters,
            "max_characters_per_token": encoder.max_characters,
            "embedding": {"dim": encoder.embedding_dim},
            "filters": [list(pair) for pair in encoder.filters],
            "activation": encoder.activation,
            "n_highway": encoder.num_highway,
        }
    return options


def write_hdf5(path: Path, arrays: Arrays) -> Path:
    """Write datasets, all contiguous."""
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array)
    return path


def write_folder(
    folder: Path,
    config: BiLMConfig | None = None,
    *,
    arrays: Arrays | None = None,
    options: dict[str, Any] | None = None,
    vocabulary: tuple[str, ...] | None = None,
    softmax: bool = False,
    names: tuple[str, str] = ("options.json", "lm_weights.hdf5"),
) -> Path:
    """Write options and weights (and vocabulary, and a softmax) as bilm-tf and simple_elmo have them."""
    config = config or tiny_config()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_text(json.dumps(options or tiny_options(config)), encoding="utf-8")
    write_hdf5(folder / names[1], tiny_arrays(config) if arrays is None else arrays)
    if vocabulary is not None:
        (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in vocabulary), encoding="utf-8")
    if softmax:
        random = np.random.default_rng(1)
        size = len(vocabulary or WORDS)
        weight = random.normal(size=(size, config.projection_dim)).astype(np.float32)
        bias = random.normal(size=size).astype(np.float32)
        write_hdf5(folder / "softmax_weights.hdf5", {"softmax/W": weight, "softmax/b": bias})
    return folder


def forget_digests(folder: Path) -> None:
    """Remove the digests of the other files from a native folder's config."""
    config = json.loads((folder / "config.json").read_text())
    del config["sha256"]
    (folder / "config.json").write_text(json.dumps(config))


def write_zip(path: Path, folder: Path, *, under: str = "", compression: int = zipfile.ZIP_DEFLATED) -> Path:
    """Pack a folder's files, flat or in one folder of the archive."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, f"{under}/{file.name}" if under else file.name)
    return path


def random_softmax(
    words: int, dim: int = 3, cutoffs: tuple[int, ...] = (), *, seed: int = 0, scale: float = 1.0
) -> Softmax:
    random = torch.Generator().manual_seed(seed)
    shapes = [(words, dim), (words,)] + ([(len(cutoffs), dim), (len(cutoffs),)] if cutoffs else [])
    weight, bias, *clusters = (scale * torch.randn(shape, generator=random) for shape in shapes)
    return Softmax(weight, bias, cutoffs, *clusters)


def random_hidden(rows: int, dim: int = 3) -> torch.Tensor:
    return torch.randn(rows, dim, generator=torch.Generator().manual_seed(9))
