"""Choose the format of a vector file by the ending of its name."""

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from elmokit.errors import ConfigError, MissingExtra
from elmokit.vectors.rows import Layout, Row

# Module and function; imported when needed, since pyarrow is optional.
_WRITERS = {
    ".h5": ("hdf5", "write_hdf5"),
    ".hdf5": ("hdf5", "write_hdf5"),
    ".npz": ("numpy_files", "write_npz"),
    ".parquet": ("arrow", "write_parquet"),
    ".arrow": ("arrow", "write_arrow"),
    ".npy": ("numpy_files", "write_npy"),
}
ENDINGS = tuple(_WRITERS)


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
        found = f"the ending {ending!r}" if ending else "no ending"
        raise ConfigError(f"{path.name} has {found}, which names no format; use one of {', '.join(ENDINGS)}")
    if _WRITERS[ending][0] == "arrow":
        require_pyarrow(f"writing {ending} files")
    return ending


def require_pyarrow(purpose: str) -> None:
    """Raise a MissingExtra unless pyarrow is installed."""
    if find_spec("pyarrow") is None:
        raise MissingExtra("pyarrow", "arrow", purpose)


def write_vectors(path: Path, rows: Iterator[Row], layout: Layout, *, ending: str, count: int) -> None:
    """Write `count` rows to `path` in the format of `ending`, one row in memory at a time."""
    module, name = _WRITERS[ending]
    getattr(import_module(f"elmokit.vectors.{module}"), name)(path, rows, layout, count)
