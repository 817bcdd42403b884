"""HDF5 as AllenNLP wrote it: a dataset "0", "1", … for each sentence, and `sentence_to_index`.

Writing survives a full disk. When a write fails under the HDF5 library, it cannot close its file: it prints
pages of errors and may crash the process. So it writes through a `_Sink`, which keeps the first error.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

import h5py

from elmokit.vectors.rows import Layout, Row, StoredSentence
from elmokit.vectors.sentence_index import SentenceIndex, SentenceIndexWriter

_INDEX = "sentence_to_index"


class _Sink(FileIO):
    """A file that silently drops everything after the first failed write."""

    error: OSError | None = None

    def write(self, data: Any) -> int:  # noqa: ANN401  (any buffer)
        view = memoryview(data).cast("B")
        written = 0
        try:
            while self.error is None and written < len(view):
                written += super().write(view[written:])
        except OSError as error:
            self.error = error
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        try:
            return super().truncate(size)
        except OSError as error:
            self.error = self.error or error
            return 0


@contextmanager
def open_hdf5(path: Path) -> Iterator[Callable[..., None]]:
    """Open a new HDF5 file.

    Yields:
        `add(name, data, **settings)`, which adds a dataset with the settings of h5py.

    Raises:
        OSError: a write failed.
    """
    with _Sink(path, "w+") as sink:
        with h5py.File(sink, "w") as file:

            def add(name: str, data: Any, **settings: Any) -> None:  # noqa: ANN401  (what h5py takes)
                file.create_dataset(name, data=data, **settings)
                if sink.error:
                    raise sink.error

            yield add
        if sink.error:
            raise sink.error


def write_hdf5(path: Path, rows: Iterator[Row], layout: Layout, count: int) -> None:
    """Write AllenNLP 0.9's layout."""
    index = SentenceIndexWriter()
    with open_hdf5(path) as add:
        for number, row in enumerate(rows):
            add(str(number), row.vectors)
            index.add(row.text, number)
        add(_INDEX, [index.finish()], dtype=h5py.string_dtype())


class Hdf5Vectors:
    """An open file from `write_hdf5`, AllenNLP or bilm-tf; sentences are read on demand."""

    def __init__(self, path: Path) -> None:
        self._file = h5py.File(path, "r")
        self.close = self._file.close
        has_index = _INDEX in self._file
        self.num_sentences = len(self._file) - has_index
        if self.num_sentences and str(self.num_sentences - 1) not in self._file:
            found = ", ".join(sorted(self._file)[:5])
            raise ValueError(f"expected datasets '0', '1', …, found {found}")
        # bilm-tf writes no index.
        content = self._file[_INDEX][0] if has_index else b""
        self._index = SentenceIndex(content, self.num_sentences)

    def sentence(self, number: int) -> StoredSentence:
        """Read one sentence."""
        dataset = self._file[str(number)]
        # A damaged header, or a link to another file, must not allocate more than this file holds.
        if dataset.file != self._file or dataset.id.get_storage_size() < dataset.nbytes:
            raise ValueError(f"dataset {number} should have {dataset.nbytes:,} bytes, which are not there")
        return StoredSentence.of(dataset[...], self._index.text(number))
