"""What a file or folder of elmokit is, told by its content, so that a wrong one is refused by its name."""

from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from elmokit.base.parsing import parse_json

_MOST_BYTES = 1 << 20  # of a config.json
TEXT = "text"
_HDF5 = b"\x89HDF\r\n\x1a\n"
_VECTORS = (b"\x93NUMPY", b"PAR1", b"ARROW1")


class Kind(StrEnum):
    """What elmokit writes, in words."""

    MODEL = "an ELMo model"
    TASK = "a task model"
    CORPUS = "a prepared corpus"
    INDEX = "a search index"
    VECTORS = "a file of vectors"
    COMPARISON = "a comparison of encoders"
    PREPARATION = "an interrupted preparation of a corpus"
    EMBEDDING = "an interrupted embedding run"
    PRETRAINING = "an interrupted pretraining run without a model"
    TASK_RUN = "an interrupted training of a task"


def kind_of(path: str | Path) -> Kind | None:
    """Return what elmokit has written at a path; None if it is something else, or cannot be read.

    Models in the formats of other systems, and vectors in HDF5, are not recognised here: only their readers
    can tell them.
    """
    path = Path(path)
    with suppress(OSError, ValueError):
        if path.is_dir():
            return _kind_of_folder(path)
        with path.open("rb") as file:
            head = file.read(4096)
        if head.startswith(_VECTORS) or (head.startswith(b"PK") and b"0.npy" in head):
            return Kind.VECTORS
        if path.name in ("config.json", "corpus.json", "job.json", "run.json"):
            home = path.parent.parent if path.name == "run.json" else path.parent
            return _kind_of_folder(home)
    return None


def other_kind(path: str | Path, wanted: Kind | str) -> str | None:
    """Say "X is an ELMo model, not a task model" if elmokit wrote something else there than is wanted."""
    found: str | None = kind_of(path)
    if found is None and wanted == TEXT:
        found = _binary(Path(path))
    if found is None or found == wanted:
        return None
    return f"{path} is {found}, not {wanted}"


def _kind_of_folder(folder: Path) -> Kind | None:
    config = folder / "config.json"
    if config.is_file() and config.stat().st_size < _MOST_BYTES:
        data = parse_json(config.read_bytes())
        written = {"elmokit": Kind.MODEL, "elmokit-task": Kind.TASK}
        return written.get(str(data.get("format"))) if isinstance(data, dict) else None
    if (folder / "corpus.json").is_file():
        return Kind.CORPUS
    if (folder / "index.json").is_file():
        return Kind.INDEX
    if (folder / "shards.json").is_file():
        return Kind.VECTORS
    if (folder / "job.json").is_file():
        return Kind.PREPARATION if (folder / "chunks").is_dir() else Kind.EMBEDDING
    training = folder / "training"
    if (training / "run.json").is_file() or _has_checkpoints(training):
        return Kind.PRETRAINING
    if _has_checkpoints(folder):
        return Kind.TASK_RUN
    return Kind.COMPARISON if (folder / "comparison.md").is_file() else None


def _has_checkpoints(run: Path) -> bool:
    return any((run / "checkpoints").glob("step-*.pt"))


def _binary(path: Path) -> str | None:
    """Return what a file is that is read as text by mistake."""
    with suppress(OSError):
        if path.is_file():
            with path.open("rb") as file:
                return "an HDF5 file" if file.read(len(_HDF5)) == _HDF5 else None
    return None
