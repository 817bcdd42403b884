"""HDF5 that survives a full disk.

When a write fails under the HDF5 library, it cannot close its file: it prints pages of errors and may take
the process down with it. So it writes through a `_Sink`, which keeps the first error to itself.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

import h5py


class _Sink(FileIO):
    """A file that, once a write has failed, takes the rest and drops it."""

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


class Hdf5Writer:
    """An HDF5 file open for writing; made by `open_hdf5`."""

    def __init__(self, file: Any, sink: _Sink) -> None:  # noqa: ANN401  (h5py has no types)
        self._file = file
        self._sink = sink

    def add(self, name: str, data: Any, **settings: Any) -> None:  # noqa: ANN401  (what h5py takes)
        """Add a dataset.

        Raises:
            OSError: The disk did not take it, or something before it.
        """
        self._file.create_dataset(name, data=data, **settings)
        if self._sink.error:
            raise self._sink.error


@contextmanager
def open_hdf5(path: Path) -> Iterator[Hdf5Writer]:
    """Open a new HDF5 file, and make sure on leaving that all of it is on the disk."""
    with _Sink(path, "w+") as sink:
        with h5py.File(sink, "w") as file:
            yield Hdf5Writer(file, sink)
        if sink.error:
            raise sink.error
