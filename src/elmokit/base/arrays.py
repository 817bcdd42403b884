"""Read arrays from files that may be damaged or hostile, never taking more memory than the file justifies."""

import math
import mmap
import re
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy.typing as npt

MAX_COMPRESSION = 20  # trained weights and vectors hardly compress
_MOST_CHUNKS = 1_000_000
_SHUFFLE, _DEFLATE, _CHECKSUM = 2, 1, 3  # HDF5's numbers of filters, in the order in which they are applied
_CHECKSUM_BYTES = 4
_SCANNED_BYTES, _SEARCHED_BYTES = 64 * 1024 * 1024, 1024 * 1024
_MOST_HEADER = 4 * 1024 * 1024  # each tensor takes some ten times what is said of it; models have hundreds
_HEAP = b"GCOL\x01\0\0\0"
# A short attribute as h5py writes it: name, type (a string of any length), shape (one), and then the length.
_ATTRIBUTE = re.compile(rb"(?:elmokit\0|tokens\0\0|offsets\0)\x19.{31}(.{4})", re.DOTALL)
_CHUNK_SLACK = 1024 * 1024  # a small dataset that may grow has a chunk larger than itself


def map_array(path: Path, mode: Literal["r", "c"] = "r") -> "npt.NDArray[Any]":
    """Return the array of a .npy file, mapped into memory.

    Args:
        path: The file.
        mode: "r" to read only; "c" for an array that can be changed, though not in the file.

    Raises:
        OSError, ValueError: The file cannot be read, is not a .npy file, or is shorter than its header says.
    """
    import numpy as np

    try:
        array: npt.NDArray[Any] = np.load(path, mmap_mode=mode, allow_pickle=False)
    except (OSError, ValueError):
        raise
    except Exception as error:  # NumPy's parser of headers raises errors of any kind
        raise ValueError(f"not a .npy file ({error})") from error
    if not isinstance(array, np.memmap):
        raise ValueError("not a .npy file")
    return array.view(np.ndarray)  # of which slices are cheap


def check_safetensors(path: Path) -> None:
    """Raise a ValueError if a safetensors file lists more tensors than any model has."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
    if size > _MOST_HEADER:
        raise ValueError(f"its header has {size:,} bytes, expected at most {_MOST_HEADER:,}")


def read_hdf5(dataset: Any) -> "npt.NDArray[Any]":  # noqa: ANN401 (of h5py, which has no types)
    """Return the numbers of an HDF5 dataset in their stored type.

    Compressed chunks are decompressed here and not by HDF5, which would unpack a chunk to any size, and as
    often as the file says.

    Raises:
        ValueError: They are not all stored in this file, or in a way that no weights or vectors are.
    """
    import numpy as np

    check_hdf5(dataset)
    array: npt.NDArray[Any] = np.empty(dataset.shape, dataset.dtype)
    if dataset.chunks is None:
        if array.size:  # older versions of h5py cannot read nothing
            dataset.read_direct(array)
        return array
    counts = [-(-size // chunk) for size, chunk in zip(dataset.shape, dataset.chunks, strict=True)]
    filters = _filters(dataset)
    for place in np.ndindex(*counts):
        start = tuple(number * size for number, size in zip(place, dataset.chunks, strict=True))
        skipped, content = dataset.id.read_direct_chunk(start)
        applied = [one for number, one in enumerate(filters) if not skipped >> number & 1]
        chunk = _unpacked_chunk(content, applied, dataset)
        target = array[tuple(slice(n, n + size) for n, size in zip(start, dataset.chunks, strict=True))]
        target[...] = chunk[tuple(map(slice, target.shape))]
    return array


def check_hdf5(dataset: Any) -> None:  # noqa: ANN401
    """Raise a ValueError if an HDF5 dataset is not one of numbers that are stored in its file."""
    import h5py

    stored, total = dataset.id.get_storage_size(), dataset.file.id.get_filesize()
    chunked = dataset.chunks is not None
    least = dataset.nbytes // MAX_COMPRESSION - 4096 if chunked else dataset.nbytes
    if dataset.dtype.kind != "f" or dataset.external or dataset.is_virtual or not least <= stored <= total:
        raise ValueError(
            f"{dataset.name} declares {dataset.nbytes:,} bytes of {dataset.dtype}, the file stores {stored:,}"
        )
    if not chunked:
        return
    filters = _filters(dataset)
    if filters != [one for one in (_SHUFFLE, _DEFLATE, _CHECKSUM) if one in filters]:
        raise ValueError(f"{dataset.name} has the filters {filters}; unpack it with h5repack")
    counts = [-(-size // chunk) for size, chunk in zip(dataset.shape, dataset.chunks, strict=True)]
    expected = math.prod(counts)
    if dataset.id.get_num_chunks() != expected or expected > _MOST_CHUNKS:
        raise ValueError(f"{dataset.name} has {dataset.id.get_num_chunks():,} chunks, expected {expected:,}")
    size, same_type = _chunk_bytes(dataset), h5py.h5t.py_create(dataset.dtype) == dataset.id.get_type()
    if expected * size > 4 * dataset.nbytes + _CHUNK_SLACK or not same_type:
        raise ValueError(f"{dataset.name} has {dataset.nbytes:,} bytes in {expected:,} chunks of {size:,}")


def check_hdf5_heaps(path: Path) -> None:
    """Raise a ValueError if strings of an HDF5 file are damaged: HDF5 would loop, or take gigabytes.

    Heaps are checked in files of up to 64 MB, and what refers to them in files of up to 1 MB: that takes some
    milliseconds.
    """
    size = path.stat().st_size
    if not 0 < size <= _SCANNED_BYTES:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        lengths = _ATTRIBUTE.findall(data) if size <= _SEARCHED_BYTES else []
        if any(int.from_bytes(length, "little") > size for length in lengths):
            raise ValueError("an attribute of it is longer than it can be")
        heap = data.find(_HEAP, 0, size - 16)
        while heap >= 0:
            objects = _heap_objects(data, heap)
            at = data.find(struct.pack("<Q", heap)) if size <= _SEARCHED_BYTES else -1
            while at >= 4:
                length, number = struct.unpack("<I8xI", data[at - 4 : at + 12].ljust(16, b"\0"))
                if length > objects.get(number, length):
                    raise ValueError("a string of it is longer than it can be")
                at = data.find(struct.pack("<Q", heap), at + 1)
            heap = data.find(_HEAP, heap + 1, size - 16)


def _heap_objects(data: mmap.mmap, heap: int) -> dict[int, int]:
    """Return the size of each string in the heap at that place."""
    objects = {}
    at, end = heap + 16, min(len(data), heap + sum(struct.unpack_from("<8xQ", data, heap)))
    while at + 16 <= end:
        number, stored = struct.unpack_from("<H6xQ", data, at)
        step = 16 + stored + -stored % 8 if number else stored  # 0: the free space that is left
        if step < 16:
            raise ValueError("a heap of its strings is damaged")
        objects[number] = stored
        at += step
    return objects


def _filters(dataset: Any) -> list[int]:  # noqa: ANN401
    made = dataset.id.get_create_plist()
    return [made.get_filter(number)[0] for number in range(made.get_nfilters())]


def _chunk_bytes(dataset: Any) -> int:  # noqa: ANN401
    return int(math.prod(dataset.chunks) * dataset.dtype.itemsize)


def _unpacked_chunk(content: bytes, filters: list[int], dataset: Any) -> "npt.NDArray[Any]":  # noqa: ANN401
    """Undo the filters of a chunk."""
    import numpy as np

    size, itemsize = _chunk_bytes(dataset), dataset.dtype.itemsize
    if _CHECKSUM in filters:
        content = content[:-_CHECKSUM_BYTES]
    if _DEFLATE in filters:
        stream = zlib.decompressobj()
        try:
            content = stream.decompress(content, size + 1)
        except zlib.error as error:
            raise ValueError(f"a chunk of {dataset.name} is damaged ({error})") from error
    if len(content) != size:
        raise ValueError(f"a chunk of {dataset.name} has {len(content):,} bytes, expected {size:,}")
    numbers = np.frombuffer(content, np.uint8)
    if _SHUFFLE in filters:  # first the first byte of each number, then the second of each, …
        numbers = np.ascontiguousarray(numbers.reshape(itemsize, -1).T)
    array: npt.NDArray[Any] = numbers.reshape(-1).view(dataset.dtype).reshape(dataset.chunks)
    return array
