"""The file formats, one writer each: rows in, one whole file out, one row in memory at a time."""

import importlib.util
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np

from elmokit.errors import ConfigError, MissingExtra
from elmokit.vectors.hdf5 import open_hdf5
from elmokit.vectors.rows import Layout, Row


class _SentenceIndex:
    """AllenNLP's `sentence_to_index`: JSON {sentence: "number"}.

    The JSON is written as the sentences come, since a dict of them would take several times their size. So a
    repeated sentence is a repeated key, of which JSON readers keep the last, as AllenNLP did.
    """

    def __init__(self) -> None:
        self._json = io.BytesIO()  # its value can be had without a copy

    def add(self, text: str, number: int) -> None:
        self._json.write(f'{", " if number else "{"}{json.dumps(text)}: "{number}"'.encode())

    def finish(self) -> bytes:
        self._json.write(b"}" if self._json.tell() else b"{}")
        return self._json.getvalue()


def _write_hdf5(path: Path, rows: Iterator[Row], layout: Layout, count: int) -> None:
    """Write AllenNLP 0.9's layout: dataset "0", "1", … by sentence number, and `sentence_to_index`."""
    index = _SentenceIndex()
    with open_hdf5(path) as file:
        for number, row in enumerate(rows):
            file.add(str(number), row.vectors)
            index.add(row.text, number)
        file.add("sentence_to_index", [index.finish()], dtype=h5py.string_dtype())


def _write_npz(path: Path, rows: Iterator[Row], layout: Layout, count: int) -> None:
    """Write the same keys as in HDF5; `sentence_to_index` is a byte string, which takes no pickle."""
    index = _SentenceIndex()
    with zipfile.ZipFile(path, "w") as archive:

        def add(key: str, array: np.ndarray) -> None:
            with archive.open(zipfile.ZipInfo(f"{key}.npy"), "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)

        for number, row in enumerate(rows):
            add(str(number), row.vectors)
            index.add(row.text, number)
        add("sentence_to_index", np.array([index.finish()]))


def _write_npy(path: Path, rows: Iterator[Row], layout: Layout, count: int) -> None:
    """Write one (n, D) array of sentence vectors."""
    header = {"descr": np.dtype(layout.dtype).str, "fortran_order": False, "shape": (count, *layout.shape)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for row in rows:
            file.write(row.vectors.tobytes())


def _write_parquet(path: Path, rows: Iterator[Row], layout: Layout, count: int) -> None:
    from elmokit.vectors import arrow

    arrow.write_parquet(path, rows, layout)


def _write_arrow(path: Path, rows: Iterator[Row], layout: Layout, count: int) -> None:
    from elmokit.vectors import arrow

    arrow.write_arrow(path, rows, layout)


_WRITERS: dict[str, Callable[[Path, Iterator[Row], Layout, int], None]] = {
    ".h5": _write_hdf5,
    ".hdf5": _write_hdf5,
    ".npz": _write_npz,
    ".parquet": _write_parquet,
    ".arrow": _write_arrow,
    ".npy": _write_npy,
}
ENDINGS = tuple(_WRITERS)


def check_ending(path: Path) -> str:
    """Return the ending that decides the format, once it is known that such a file can be written.

    Raises:
        ConfigError: The ending is none of `ENDINGS`.
        MissingExtra: The format needs pyarrow.

    >>> check_ending(Path("vectors.h5"))
    '.h5'
    """
    ending = path.suffix.lower()
    if ending not in _WRITERS:
        found = f"the ending {ending!r}" if ending else "no ending"
        raise ConfigError(f"{path.name} has {found}, which names no format; use one of {', '.join(ENDINGS)}")
    if ending in (".parquet", ".arrow") and importlib.util.find_spec("pyarrow") is None:
        raise MissingExtra("pyarrow", "arrow", f"writing {ending} files")
    return ending


def write_vectors(path: Path, rows: Iterator[Row], layout: Layout, *, ending: str, count: int) -> None:
    """Write `count` rows to `path` in the format of `ending`, whatever `path` itself ends in."""
    _WRITERS[ending](path, rows, layout, count)
