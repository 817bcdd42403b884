"""Choose the format of a vector file by the ending of its name."""

from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from elmokit.errors import ConfigError, MissingExtra
from elmokit.vectors.rows import Layout, Row, file_rows

# Module and function; imported when needed, since pyarrow is optional.
_WRITERS = {
    ".h5": ("hdf5", "write_hdf5"),
    ".hdf5": ("hdf5", "write_hdf5"),
    ".npz": ("numpy_files", "write_npz"),
    ".parquet": ("arrow", "write_parquet"),
    ".arrow": ("arrow", "write_arrow"),
    ".npy": ("numpy_files", "write_npy"),
    ".csv": ("csv_files", "write_csv"),
    ".tsv": ("csv_files", "write_tsv"),
}
ENDINGS = tuple(_WRITERS)
_SPREADSHEETS = (".xlsx", ".xls", ".ods")


def check_ending(path: Path) -> str:
    """Return the ending that decides the format, if such a file can be written here.

    Raises:
        ConfigError: The ending is none of `ENDINGS`.
        MissingExtra: The format needs pyarrow.

    >>> check_ending(Path("vectors.h5"))
    '.h5'
    """
    ending = path.suffix.lower()
    if ending not in _WRITERS:
        if path.is_dir():
            raise ConfigError(f"{path} is a folder, expected the name of a file: {', '.join(ENDINGS)}")
        found = f"the ending {ending!r}" if ending else "no ending"
        known = f"use one of {', '.join(ENDINGS)}"
        advice = "for a spreadsheet use .csv" if ending in _SPREADSHEETS else known
        raise ConfigError(f"{path.name} has {found}, which names no format; {advice}")
    if _WRITERS[ending][0] == "arrow":
        require_pyarrow(f"writing {ending} files")
    return ending


def require_pyarrow(purpose: str) -> None:
    """Raise a MissingExtra unless pyarrow is installed."""
    if find_spec("pyarrow") is None:
        raise MissingExtra("pyarrow", "arrow", purpose)


def write_vectors(
    path: Path,
    rows: Iterable[Row],
    layout: Layout,
    *,
    ending: str,
    count: int,
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Write rows to `path` in the format of `ending`, one row in memory at a time.

    Args:
        path: The file.
        rows: Sentences as `layout` says.
        layout: Shape and type of their vectors.
        ending: One of `ENDINGS`.
        count: How many rows the file will have: sentences, or uses.
        metadata: Settings, which the file keeps if its format has a place for them.
    """
    module, name = _WRITERS[ending]
    write = getattr(import_module(f"elmokit.vectors.{module}"), name)
    write(path, file_rows(rows, layout), layout, count, {"unit": layout.unit, **(metadata or {})})


def arrow_stream(rows: Iterable[Row], layout: Layout, metadata: Mapping[str, Any]) -> bytes:
    """Return rows as an Arrow IPC stream, with the columns of an Arrow file.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    require_pyarrow("an Arrow stream")
    from elmokit.vectors.arrow import stream_bytes

    return stream_bytes(file_rows(rows, layout), layout, {"unit": layout.unit, **metadata})
