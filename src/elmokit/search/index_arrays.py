"""Arrays and texts of a segment as .npy files, which are mapped into memory."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.base import map_array
from elmokit.errors import DataError

Array = npt.NDArray[Any]
_CHECKED_BYTES = 4 << 20  # of files whose checksum is compared at every opening


class Texts:
    """Texts one after another in one array of bytes, and where each begins."""

    def __init__(self, content: Array, starts: Array) -> None:
        self._content, self._starts = content, starts

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, number: int) -> str:
        start, end = self._starts[number : number + 2].tolist()
        return self._content[start:end].tobytes().decode(errors="replace")

    def find(self, text: str) -> int | None:
        """Return the position of a text among texts that are sorted by their bytes; None if it is missing."""
        wanted = text.encode(errors="replace")
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            start, end = self._starts[middle : middle + 2].tolist()
            found = self._content[start:end].tobytes()
            if found == wanted:
                return middle
            low, high = (middle + 1, high) if found < wanted else (low, middle)
        return None


def text_arrays(name: str, texts: Iterable[str]) -> dict[str, Array]:
    """Return the two arrays of `Texts`."""
    encoded = [text.encode(errors="replace") for text in texts]
    starts = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return {name: np.frombuffer(b"".join(encoded), np.uint8), f"{name}-starts": starts}


def save_arrays(folder: Path, arrays: dict[str, Array]) -> None:
    """Write each array as a .npy file."""
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", np.ascontiguousarray(array), allow_pickle=False)


def file_records(folder: Path) -> dict[str, dict[str, Any]]:
    """Return size and checksum of each file of a folder."""
    return {path.name: file_record(path) for path in sorted(folder.iterdir())}


def file_record(path: Path) -> dict[str, Any]:
    """Return size and checksum of a file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}


def check_files(folder: Path, records: Any, *, thorough: bool = False) -> None:  # noqa: ANN401 (from JSON)
    """Raise a DataError that names a file whose size, or checksum, is not the recorded one.

    Args:
        folder: The folder.
        records: What `file_records` returned.
        thorough: Whether to compare the checksums of large files, too.
    """
    if not isinstance(records, dict):
        raise DataError(f"{folder}: the list of its files is damaged; build the index again")
    for name, record in records.items():
        path = folder / Path(str(name)).name
        size = path.stat().st_size if path.is_file() else None
        expected = record.get("bytes") if isinstance(record, dict) else None
        if size is None or size != expected:
            found = "is missing" if size is None else f"has {size:,} bytes"
            raise DataError(f"{path} {found}, expected {expected!r:.20} bytes; {_ADVICE}")
        if thorough or size <= _CHECKED_BYTES:
            with path.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != record.get("sha256"):
                    raise DataError(f"{path} has changed since it was written: its sha256 differs; {_ADVICE}")


_HEADER = 128  # bytes of a .npy file without numbers, which cannot be mapped
_ADVICE = "restore it from a copy, or build the index again"


class Arrays:
    """The arrays of a folder, mapped; every one is checked against the shape and type that is expected."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, name: str, dtype: str, *shape: int | None) -> Array:
        """Return an array; None in the shape stands for any size.

        Raises:
            DataError: The file cannot be read, or holds another array.
        """
        path = self.folder / f"{name}.npy"
        try:
            array = _empty(path) if path.stat().st_size == _HEADER else map_array(path)
        except (OSError, ValueError) as error:
            raise DataError(f"{path} cannot be read ({str(error)[:200]}); {_ADVICE}") from error
        fits = array.ndim == len(shape) and all(
            wanted in (None, size) for wanted, size in zip(shape, array.shape, strict=True)
        )
        if not fits or array.dtype != np.dtype(dtype):
            expected = f"{dtype} {tuple('any' if size is None else size for size in shape)}"
            raise DataError(f"{path} holds {array.dtype} {array.shape}, expected {expected}; {_ADVICE}")
        return array

    def starts(self, name: str, end: int, count: int | None = None) -> Array:
        """Return an array of positions that rise from 0 to `end`."""
        starts = self.get(name, "int64", None if count is None else count + 1)
        if not len(starts) or starts[0] != 0 or starts[-1] != end or (np.diff(starts) < 0).any():
            raise DataError(f"{self.folder / name}.npy does not hold rising positions; {_ADVICE}")
        return starts

    def below(self, name: str, dtype: str, limit: int, *shape: int | None) -> Array:
        """Return an array of whole numbers from 0 to below `limit`."""
        array = self.get(name, dtype, *shape)
        if array.size and (int(array.min()) < 0 or int(array.max()) >= limit):
            raise DataError(f"{self.folder / name}.npy holds numbers beyond {limit}; {_ADVICE}")
        return array

    def texts(self, name: str, count: int | None = None) -> Texts:
        """Return texts."""
        content = self.get(name, "uint8", None)
        return Texts(content, self.starts(f"{name}-starts", len(content), count))


def _empty(path: Path) -> Array:
    try:
        with path.open("rb") as file:
            np.lib.format.read_magic(file)
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    except Exception as error:  # NumPy's parser of headers raises errors of any kind
        raise ValueError(f"not a .npy file ({error})") from error
    if dtype.hasobject or 0 not in shape:
        raise ValueError("it has no numbers")
    return np.empty(shape, dtype)
