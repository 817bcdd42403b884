"""Read the vector files that `embed_file` writes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, Self

from elmokit.base import Kind, other_kind
from elmokit.errors import DataError, ElmoError
from elmokit.vectors.csv_files import CsvVectors, looks_like_table
from elmokit.vectors.hdf5 import Hdf5Vectors
from elmokit.vectors.numpy_files import NpyVectors, NpzVectors
from elmokit.vectors.rows import StoredSentence
from elmokit.vectors.shard_folder import ShardedVectors
from elmokit.vectors.writers import require_pyarrow


class _Source(Protocol):
    """An open file of one format."""

    @property
    def num_sentences(self) -> int: ...
    @property
    def metadata(self) -> Mapping[str, Any]: ...
    def sentence(self, number: int) -> StoredSentence: ...
    def close(self) -> None: ...


def read_vectors(path: str | Path) -> "VectorFile":
    """Open a file of vectors; the format is recognised by its content, not by its name.

    Args:
        path: A file from `embed_file` or `elmokit embed` (HDF5, npz, Parquet, Arrow, npy, CSV or TSV), or
            the HDF5 output of AllenNLP's or bilm-tf's embedders; or the folder of shards that
            `elmokit.integrations.ray.embed_dataset` writes.

    Raises:
        DataError: The file is missing, damaged, or no file of vectors.
        MissingExtra: It is Parquet or Arrow, and pyarrow is not installed.

    Example:
        >>> for sentence in elmokit.read_vectors("vectors.parquet"):       # doctest: +SKIP
        ...     print(sentence.tokens, sentence.layers.shape)
    """
    return VectorFile(Path(path))


class VectorFile:
    """The sentences of a vector file in order: iterate over it, or take one by its number.

    Only one sentence is in memory at a time; of a Parquet file one row group (32 MB as elmokit writes them),
    so reading those in order is much faster than jumping about. It can be used as a context manager.

    A file of the uses of a word has an item for each use. A CSV or TSV of tokens has none for a line without
    tokens.

    Attributes:
        metadata: What the file says of itself: model, layers, engine, version, … Empty if it says nothing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._errors():
            self._source = _open(path)
            self._len = self._source.num_sentences
            self.metadata = dict(self._source.metadata)

    def __len__(self) -> int:
        return self._len

    def __iter__(self) -> Iterator[StoredSentence]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, number: int) -> StoredSentence:
        if not -len(self) <= number < len(self):
            raise IndexError(f"there is no sentence {number}; {self._path} has {len(self)}")
        with self._errors():
            return self._source.sentence(number % len(self))

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except ElmoError:
            raise
        except Exception as error:  # the libraries raise errors of any kind for damaged files
            raise DataError(
                f"{self._path}: cannot be read as a file of vectors ({error}); "
                "it is damaged, or something else: write it again with embed_file"
            ) from error


def _open(path: Path) -> _Source:
    wrong = other_kind(path, Kind.VECTORS)
    if wrong is not None:
        raise DataError(wrong)
    if path.is_dir():
        require_pyarrow("reading shards")
        return ShardedVectors(path)
    if not path.is_file():
        part = path.with_name(f"{path.name}.part")
        found = f"only an interrupted run, {part}: resume it" if part.exists() else "no such file"
        raise DataError(f"{path}: {found}")
    with path.open("rb") as file:
        head = file.read(8)
    if head == b"\x89HDF\r\n\x1a\n":
        return Hdf5Vectors(path)
    if head.startswith(b"PK"):
        return NpzVectors(path)
    if head.startswith(b"\x93NUMPY"):
        return NpyVectors(path)
    if head.startswith((b"PAR1", b"ARROW1")):
        require_pyarrow("reading Parquet and Arrow files")
        from elmokit.vectors.arrow import TableVectors

        return TableVectors(path, parquet=head.startswith(b"PAR1"))
    if looks_like_table(head):
        return CsvVectors(path)
    raise ValueError(f"it begins with {head!r}, not as HDF5, npz, npy, Parquet, Arrow or CSV files do")
