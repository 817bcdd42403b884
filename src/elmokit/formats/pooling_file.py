"""The statistics of sentence vectors, `pooling.safetensors` in a model folder.

The file is no part of the checksums in config.json, so that it can be made again later in one step.
"""

from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from elmokit.base import locked, write_bytes, write_errors
from elmokit.errors import ConfigError, ModelFileError
from elmokit.formats.inspect import describe_file
from elmokit.model import BiLMConfig, FittedPooling

POOLING_FILE = "pooling.safetensors"
_WORDS = "words"
_MOST_BYTES = 1 << 28
_MOST_WORDS = 100_000  # each takes some ten times its letters
_ADVICE = "fit it again, or remove it"


def read_pooling(folder: Path, config: BiLMConfig) -> FittedPooling | None:
    """Read the statistics of a model folder; None if there are none.

    Raises:
        ModelFileError: The file is damaged, or belongs to another model.
    """
    path = folder / POOLING_FILE
    if not path.exists():
        return None
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ValueError(f"it has more than {_MOST_BYTES:,} bytes")
        stored = load(path.read_bytes())
        letters = stored.pop(_WORDS)
        if letters.dtype != np.uint8 or any(array.dtype.kind != "f" for array in stored.values()):
            raise ValueError("its numbers are of another type")
        if (letters == ord("\n")).sum() >= _MOST_WORDS:
            raise ValueError(f"it has more than {_MOST_WORDS:,} words")
        arrays = {name: array.astype(np.float32) for name, array in stored.items()}
        pooling = FittedPooling(tuple(letters.tobytes().decode().split("\n")), **arrays)
    except (OSError, SafetensorError, ValueError, TypeError, KeyError, AttributeError) as error:
        found = f"{path}: cannot be read as statistics of sentence vectors: it is {describe_file(path)}"
        raise ModelFileError(f"{found} ({error}); {_ADVICE}") from error
    expected = config.num_layers + 1, config.output_dim
    if pooling.means.shape != expected:
        raise ModelFileError(
            f"{path}: is for a model with {pooling.means.shape} layers and numbers, this one has {expected}; "
            f"{_ADVICE}"
        )
    return pooling


def write_pooling(pooling: FittedPooling, folder: Path) -> None:
    """Write the statistics into a model folder, in place of older ones.

    Raises:
        DataError: The folder cannot be written.
        BusyError: Another process is writing there.
    """
    path = folder / POOLING_FILE
    if any("\n" in word or not word for word in pooling.words):
        raise ConfigError("a word of the statistics is empty, or has a line break")
    words = np.frombuffer("\n".join(pooling.words).encode(), np.uint8)
    arrays = {name: array.astype(np.float16) for name, array in pooling.arrays().items()}
    with locked(path), write_errors(path):
        write_bytes(path, save({_WORDS: words, **arrays}))
