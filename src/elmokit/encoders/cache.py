"""Vectors computed once and kept on disk, so that each epoch need not run the encoder again.

A cache is a folder. The vectors of an encoder lie under its fingerprint, in segments that appear only when
they are complete. So runs can share a cache: one fills it, and the others wait for it.

    FINGERPRINT-ENGINE/NAME.npy        float32 (tokens, L, D), memory-mapped
    FINGERPRINT-ENGINE/NAME.keys.npy   for each sentence: the hash of its tokens, where it starts and ends
"""

import hashlib
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elmokit.base import draft_file, locked, map_array, write_errors
from elmokit.encoders.base import Encoder, Sentences
from elmokit.errors import DataError
from elmokit.kernels import engine_name

_SEGMENT = 1024  # sentences; an interruption loses at most one segment
_KEY = np.dtype([("key", "V16"), ("start", "<i8"), ("end", "<i8")])


class CachedEncoder:
    """An encoder whose vectors are kept; see `Encoder`.

    Args:
        encoder: What computes the vectors.
        folder: Of the cache; made if it does not exist.
    """

    adaptable = False  # or its vectors would have to be computed again

    def __init__(self, encoder: Encoder, folder: Path) -> None:
        self.spec, self.dim, self.num_layers = encoder.spec, encoder.dim, encoder.num_layers
        self.contextual, self.pretrained = encoder.contextual, encoder.pretrained
        self.tokenizer = encoder.tokenizer
        self.save = encoder.save
        self._encoder = encoder
        self._fingerprint = encoder.fingerprint()
        self._folder = folder / f"{self._fingerprint}-{engine_name('float32')}"  # engines round differently
        self._places: dict[bytes, npt.NDArray[np.float32]] = {}
        self._segments: set[Path] = set()
        self._read_segments()

    def fingerprint(self) -> str:
        """Return that of the encoder."""
        return self._fingerprint

    def encode(self, sentences: Sentences) -> list[Tensor]:
        """Return (L, T, D) for each sentence: a view of the file, or computed (and not kept) if unknown."""
        keys = [_key(sentence) for sentence in sentences]
        missing = [row for row, key in enumerate(keys) if key not in self._places]
        computed = dict(zip(missing, self._encoder.encode([sentences[row] for row in missing]), strict=True))
        return [
            computed[row] if row in computed else torch.from_numpy(self._places[key]).transpose(0, 1)
            for row, key in enumerate(keys)
        ]

    def fill(
        self,
        sentences: Sentences,
        advance: Callable[[int], None] = lambda count: None,
        say: Callable[[str], object] = lambda message: None,
    ) -> None:
        """Compute and keep what is unknown.

        Args:
            sentences: What is needed.
            advance: Called with the number of sentences done.
            say: Called with a message if another process is filling the cache, which is then waited for.

        Raises:
            DataError: The cache cannot be written.
        """
        distinct = {_key(sentence): sentence for sentence in sentences}
        with locked(self._folder, parents=True, wait=say), write_errors(self._folder):
            self._folder.mkdir(exist_ok=True)
            self._read_segments()
            self._remove_halves()
            missing = [(key, sentence) for key, sentence in distinct.items() if key not in self._places]
            advance(len(sentences) - len(missing))
            for start in range(0, len(missing), _SEGMENT):
                part = missing[start : start + _SEGMENT]
                self._write_segment([key for key, _ in part], [sentence for _, sentence in part])
                advance(len(part))

    def _write_segment(self, keys: list[bytes], sentences: Sentences) -> None:
        vectors = self._encoder.encode(sentences)
        ends = np.cumsum([layers.shape[1] for layers in vectors])
        index = np.array(
            [(key, end - layers.shape[1], end) for key, end, layers in zip(keys, ends, vectors, strict=True)],
            dtype=_KEY,
        )
        data = torch.cat(vectors, dim=1).transpose(0, 1).contiguous().numpy()  # (tokens, L, D)
        name = uuid.uuid4().hex
        for ending, array in ((".npy", data), (".keys.npy", index)):  # the keys last: they make it valid
            with draft_file(self._folder / f"{name}{ending}") as draft, draft.open("wb") as file:
                np.save(file, array)
        self._read_segments()

    def _read_segments(self) -> None:
        """Read the keys of new segments.

        Raises:
            DataError: A segment is damaged.
        """
        for path in sorted(set(self._folder.glob("*.keys.npy")) - self._segments):
            try:
                # Copy-on-write, because torch wants writable memory; nothing is ever written.
                data, index = map_array(_vectors_of(path), "c"), map_array(path)
                self._check_segment(data, index)
                for key, start, end in index:
                    self._places[bytes(key)] = data[start:end]
            except (OSError, ValueError) as error:
                raise DataError(f"{path} is damaged ({error}); delete it to make it again") from error
            self._segments.add(path)

    def _check_segment(self, data: npt.NDArray[Any], index: npt.NDArray[Any]) -> None:
        if index.dtype != _KEY or data.dtype != np.float32 or data.shape[1:] != (self.num_layers, self.dim):
            raise ValueError(f"it has {data.dtype} {list(data.shape)} and {index.dtype}")
        inside = (index["start"] >= 0) & (index["start"] <= index["end"]) & (index["end"] <= len(data))
        if index.ndim != 1 or not inside.all():
            raise ValueError("a sentence lies outside of the vectors")

    def _remove_halves(self) -> None:
        """Delete the vectors of segments that a killed process could not finish."""
        whole = {_vectors_of(path) for path in self._segments}
        for path in self._folder.glob("*.npy"):
            if path not in self._segments | whole:
                path.unlink()


def _vectors_of(keys: Path) -> Path:
    return keys.with_name(keys.name.replace(".keys", ""))


def _key(sentence: Sequence[str]) -> bytes:
    """Return a hash of the tokens and their lengths."""
    words = [token.encode("utf-8", "surrogatepass") for token in sentence]
    lengths = ",".join(str(len(token)) for token in words).encode()
    return hashlib.blake2b(b"".join([lengths, b" ", *words]), digest_size=16).digest()
