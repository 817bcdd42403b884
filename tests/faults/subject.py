"""What elmokit reads: the files of it that are changed, each with its mutator."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.faults import mutation
from tests.faults.mutation import Mutator

GOLDEN = Path(__file__).parents[1] / "golden" / "v0_1"
HDF5 = mutation.near(
    b"\x89HDF", b"TREE", b"HEAP", b"SNOD", b"GCOL", b"OHDR", b"\x01\x00\x08\x00", b"\x03\x00\x08\x00"
)


@dataclass(frozen=True)
class Subject:
    """Something that elmokit reads.

    Attributes:
        path: what is opened.
        open: opens and reads all of it.
        files: the files that are changed, each with its mutator.
    """

    path: Path
    open: Callable[[Path], object]
    files: dict[Path, Mutator]


def mutator_of(name: str) -> Mutator:
    """Return the mutator for a file of that name."""
    endings: dict[str, Mutator] = {
        ".json": mutation.json_text, ".jsonl": mutation.json_lines, ".safetensors": mutation.safetensors,
        ".hdf5": HDF5, ".h5": HDF5, ".npy": mutation.npy, ".index": mutation.table_of_checkpoint,
        ".txt": mutation.text, ".dic": mutation.text, ".toml": mutation.text, ".vec": mutation.text,
        ".conllu": mutation.text, ".tsv": mutation.text, ".csv": mutation.text, ".at": mutation.text,
        ".ft": mutation.text, ".in": mutation.text, ".out": mutation.text, "label": mutation.text,
        ".gz": mutation.packed(mutation.text), ".xz": mutation.packed(mutation.text),
        ".parquet": mutation.at_end(0.5), ".arrow": mutation.any_bytes,
        ".zip": mutation.archive(mutator_of), ".npz": mutation.archive(mutator_of),
        ".pkl": mutation.archive(mutator_of), ".pt": mutation.archive(mutator_of),
    }  # fmt: skip
    return next((found for ending, found in endings.items() if name.endswith(ending)), mutation.any_bytes)


def subject(path: Path, open: Callable[[Path], object], *extra: Path) -> Subject:
    """Make a subject whose files are all of a folder, or one file and some extra ones."""
    files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
    kept = [file for file in (*files, *extra) if file.name != "README.md" and not file.name.startswith(".")]
    return Subject(path, open, {file: mutator_of(file.name) for file in sorted(kept)})
