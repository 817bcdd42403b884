"""Vectors computed once and kept on disk, so that each epoch need not run the encoder again.

A cache is a folder. The vectors of an encoder lie under its fingerprint, in segments that appear only when
they are complete. So runs can share a cache, and an interrupted run leaves no partial file.

    FINGERPRINT/NAME.npy         float32 (tokens, L, D), memory-mapped
    FINGERPRINT/NAME.keys.npy    for each sentence: the hash of its tokens, where it starts, where it ends
"""

import hashlib
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elmokit.base import draft_file
from elmokit.encoders.base import Encoder, Sentences

_SEGMENT = 1024  # sentences; an interruption loses at most one segment
_KEY = np.dtype([("key", "V16"), ("start", "<i8"), ("end", "<i8")])


class CachedEncoder:
    """An encoder whose vectors are kept; see `Encoder`.

    Args:
        encoder: What computes the vectors.
        folder: Of the cache; made if it does not exist.
    """

    def __init__(self, encoder: Encoder, folder: Path) -> None:
        self.spec, self.dim, self.num_layers = encoder.spec, encoder.dim, encoder.num_layers
        self.contextual, self.pretrained = encoder.contextual, encoder.pretrained
        self.tokenizer = encoder.tokenizer
        self.save = encoder.save
        self._encoder = encoder
        self._fingerprint = encoder.fingerprint()
        self._folder = folder / self._fingerprint
        self._folder.mkdir(parents=True, exist_ok=True)
        self._places: dict[bytes, npt.NDArray[np.float32]] = {}
        for keys in sorted(self._folder.glob("*.keys.npy")):
            self._read_segment(keys)

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

    def fill(self, sentences: Sentences, advance: Callable[[int], None] = lambda count: None) -> None:
        """Compute and keep what is unknown; `advance` is called with the number of sentences done."""
        distinct = {_key(sentence): sentence for sentence in sentences}
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
        self._read_segment(self._folder / f"{name}.keys.npy")

    def _read_segment(self, path: Path) -> None:
        # Copy-on-write, because torch wants writable memory; nothing is ever written.
        data = np.load(path.with_name(path.name.replace(".keys", "")), mmap_mode="c")
        for key, start, end in np.load(path):
            self._places[bytes(key)] = data[start:end]


def _key(sentence: Sequence[str]) -> bytes:
    """Return a hash of the tokens and their lengths."""
    words = [token.encode("utf-8", "surrogatepass") for token in sentence]
    lengths = ",".join(str(len(token)) for token in words).encode()
    return hashlib.blake2b(b"".join([lengths, b" ", *words]), digest_size=16).digest()
