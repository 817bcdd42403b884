"""bilm-tf's dumps of vectors into HDF5. Shapes: V vocabulary, T tokens, L layers, P projection."""

from pathlib import Path

import torch

from elmokit.base import draft_file
from elmokit.compat.bilm.batchers import bounded_vocabulary
from elmokit.embed import InferenceBiLM, TypeVectors, load
from elmokit.formats import load_model
from elmokit.text import read_lines
from elmokit.vectors import open_hdf5

_TYPES_AT_ONCE = 8192


def dump_token_embeddings(
    vocab_file: str | Path, options_file: str | Path, weight_file: str | Path | None, outfile: str | Path
) -> None:
    """Write the token vectors (V, P) of a vocabulary, in its order, as HDF5 dataset `embedding`."""
    tokens = list(bounded_vocabulary(vocab_file).tokens)
    model = load_model(options_file, weight_file).model
    type_vectors = TypeVectors(InferenceBiLM(model, "float32"), None, torch.device("cpu"))
    with torch.inference_mode():
        starts = range(0, len(tokens), _TYPES_AT_ONCE)
        vectors = torch.cat([type_vectors(tokens[start : start + _TYPES_AT_ONCE]) for start in starts])
    with draft_file(Path(outfile)) as draft, open_hdf5(draft) as file:
        file.add("embedding", vectors.numpy())


def dump_bilm_embeddings(
    vocab_file: str | Path | None,
    dataset_file: str | Path,
    options_file: str | Path,
    weight_file: str | Path | None,
    outfile: str | Path,
    *,
    stateful: bool = False,
) -> None:
    """Write all layers (L+1, T, 2P) of each line of a file of space-separated tokens, as HDF5.

    Args:
        vocab_file: accepted for old programs; has no effect.
        dataset_file: the text, plain or compressed.
        options_file: the model's options.
        weight_file: its weights.
        outfile: gets datasets "0", "1", … by line.
        stateful: start each line in the state where the line before it ended, as bilm-tf always does.
    """
    embedder = load(options_file, weight_file, stateful=stateful)
    with draft_file(Path(outfile)) as draft, open_hdf5(draft) as file:
        lines = (line.split() for line in read_lines(dataset_file))
        for number, sentence in enumerate(embedder.stream(lines)):
            file.add(str(number), sentence.layers)
