"""Unpack a zip that may be hostile: sizes and names are checked before a byte is written."""

import lzma
import shutil
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from elmokit.base import MAX_RATIO, SLACK, is_compressed, temporary_folder
from elmokit.errors import ModelFileError

_MAX_FILES = 1000
_HEAD = 16

# What zipfile and its decompressors raise for a damaged archive.
_DAMAGE = (
    zipfile.BadZipFile,
    NotImplementedError,
    EOFError,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    UnicodeError,
)


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """Unpack an archive into a temporary folder, which is deleted when the block ends.

    Raises:
        ModelFileError: it is damaged, would unpack to far more than its size, or has paths that lead outside.
    """
    try:
        with zipfile.ZipFile(path) as archive, temporary_folder() as folder:
            # Compressed files inside could unpack to any size; a model's zip does not need them.
            packed = ("/", ".gz", ".xz", ".zst")
            members = [info for info in archive.infolist() if not info.filename.lower().endswith(packed)]
            _check(path, members)
            for info in members:
                _extract(path, archive, info, folder)
            yield folder
    except _DAMAGE as error:
        raise ModelFileError(f"{path}: the zip archive is damaged ({error}); get it again") from error


def _check(path: Path, members: list[zipfile.ZipInfo]) -> None:
    for info in members:
        place = PurePosixPath(info.filename.replace("\\", "/"))
        if place.is_absolute() or ".." in place.parts or any(":" in part for part in place.parts[:1]):
            raise ModelFileError(f"{path}: refused: {info.filename!r} in it leads out of the archive")
        if info.flag_bits & 1:
            raise ModelFileError(f"{path}: {info.filename!r} in it is encrypted; unpack it yourself first")
    total, size = sum(info.file_size for info in members), path.stat().st_size
    if total > MAX_RATIO * size + SLACK or len(members) > _MAX_FILES:
        raise ModelFileError(
            f"{path}: refused: {size:,} bytes would unpack to {total:,} in {len(members)} files, "
            "which no model does; if you trust it, unpack it yourself and load the folder"
        )


def _extract(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo, folder: Path) -> None:
    target = folder / PurePosixPath(info.filename.replace("\\", "/"))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # zipfile stops at the declared size and checks the checksum: a wrong header raises BadZipFile.
        with archive.open(info) as source, target.open("wb") as sink:
            head = source.read(_HEAD)
            if is_compressed(head):  # whatever its name
                raise ModelFileError(
                    f"{path}: refused: {info.filename!r} in it is compressed once more; unpack both yourself"
                )
            sink.write(head)
            shutil.copyfileobj(source, sink, 1 << 20)
    except (OSError, NotImplementedError) as error:  # no space, or an unsupported compression
        raise ModelFileError(
            f"{path}: {info.filename!r} in it cannot be unpacked ({error}); unpack it yourself"
        ) from error
