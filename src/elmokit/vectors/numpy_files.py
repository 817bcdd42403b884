"""NumPy's files: npz with an array for each sentence, npy with one array of sentence vectors."""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.vectors.rows import Layout, Row, StoredSentence
from elmokit.vectors.sentence_index import SentenceIndex, SentenceIndexWriter


def write_npz(path: Path, rows: Iterator[Row], layout: Layout, count: int) -> None:
    """Write the same keys as in HDF5; `sentence_to_index` is a byte string, which needs no pickle."""
    index = SentenceIndexWriter()
    with zipfile.ZipFile(path, "w") as archive:

        def add(key: str, array: np.ndarray) -> None:
            with archive.open(zipfile.ZipInfo(f"{key}.npy"), "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)

        for number, row in enumerate(rows):
            add(str(number), row.vectors)
            index.add(row.text, number)
        add("sentence_to_index", np.array([index.finish()]))


class NpzVectors:
    """An open file from `write_npz`; sentences are read on demand."""

    def __init__(self, path: Path) -> None:
        self._archive = zipfile.ZipFile(path)
        self.close = self._archive.close
        self.num_sentences = len(self._archive.infolist()) - 1
        self._index = SentenceIndex(bytes(self._read("sentence_to_index")[0]), self.num_sentences)

    def sentence(self, number: int) -> StoredSentence:
        """Read one sentence."""
        return StoredSentence.of(self._read(str(number)), self._index.text(number))

    def _read(self, key: str) -> npt.NDArray[Any]:
        with self._archive.open(f"{key}.npy") as entry:
            array: npt.NDArray[Any] = np.lib.format.read_array(entry, allow_pickle=False)
            return array


def write_npy(path: Path, rows: Iterator[Row], layout: Layout, count: int) -> None:
    """Write one (n, D) array of sentence vectors."""
    header = {"descr": np.dtype(layout.dtype).str, "fortran_order": False, "shape": (count, *layout.shape)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for row in rows:
            file.write(row.vectors.tobytes())


class NpyVectors:
    """An open file from `write_npy`, mapped into memory."""

    def __init__(self, path: Path) -> None:
        self._array = np.load(path, mmap_mode="r", allow_pickle=False)  # (n, D)
        if self._array.ndim != 2:
            raise ValueError(f"expected an array of shape [sentences, dim], found {list(self._array.shape)}")
        self.num_sentences = len(self._array)

    def sentence(self, number: int) -> StoredSentence:
        """Read one sentence."""
        return StoredSentence.of(np.array(self._array[number]), None)

    def close(self) -> None:
        """Release the file."""
        del self._array
