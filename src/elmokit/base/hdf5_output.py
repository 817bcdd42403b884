"""HDF5 files whose writing survives a full disk.

When a write fails under the HDF5 library, it cannot close its file: it prints pages of errors and may crash
the process. So it writes through a `_Sink`, which keeps the first error.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any


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
def open_hdf5(path: Path, attributes: Mapping[str, str] | None = None) -> Iterator[Callable[..., Any]]:
    """Open a new HDF5 file.

    Args:
        path: The file.
        attributes: Attributes of the file.

    Yields:
        `add(name, data, attributes, **settings)`, which adds a dataset with the settings of h5py, and returns
        it.

    Raises:
        OSError: a write failed.
    """
    import h5py  # slow, and not always needed

    with _Sink(path, "w+") as sink:
        with h5py.File(sink, "w") as file:
            file.attrs.update(attributes or {})

            def add(
                name: str, data: object, attributes: Mapping[str, str] | None = None, **settings: object
            ) -> h5py.Dataset:
                dataset = file.create_dataset(name, data=data, **settings)
                dataset.attrs.update(attributes or {})
                if sink.error:
                    raise sink.error
                return dataset

            yield add
        if sink.error:
            raise sink.error
