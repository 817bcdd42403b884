"""What a file is, by its first bytes, in words for messages."""

import json
from pathlib import Path
from typing import Any, Literal

from elmokit.errors import ModelFileError

FileKind = Literal["hdf5", "zip", "json", "other"]

_MAX_JSON = 16 * 1024 * 1024  # configurations are small; a larger "JSON" is something else

_MAGIC = (
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"PK\x03\x04", "a zip archive"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"\x1f\x8b", "a gzip file"),
    (b"\xfd7zXZ\x00", "an xz file"),
    (b"\x28\xb5\x2f\xfd", "a zstandard file"),
    (b"version https://git-lfs", "a Git LFS pointer (the file itself was never fetched: run git lfs pull)"),
    (b"<!doctype", "a web page (the download gave an error page instead of the file)"),
    (b"<html", "a web page (the download gave an error page instead of the file)"),
    (b"\x80\x02", "a Python pickle"),
)


def describe_file(path: Path) -> str:
    """Say what a file seems to be.

    Example:
        >>> describe_file(Path("no-such-file"))
        'missing'
    """
    if not path.exists():
        return "missing"
    if path.is_dir():
        return "a folder"
    head = _head(path)
    if not head:
        return "empty"
    for magic, words in _MAGIC:
        if head.startswith(magic) or head.strip().lower().startswith(magic):
            return words
    return "a JSON or text file" if head.lstrip()[:1] in (b"{", b"[") else "of an unknown kind"


def file_kind(path: Path) -> FileKind:
    """Tell the kinds that a loader opens apart, by content."""
    head = _head(path)
    if head.startswith(b"\x89HDF\r\n\x1a\n"):
        return "hdf5"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    return "json" if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{") else "other"


def read_json(path: Path, *, most_bytes: int = _MAX_JSON) -> dict[str, Any]:
    """Read a JSON object, whatever the platform's encoding.

    Raises:
        ModelFileError: it is not one.
    """
    try:
        if path.stat().st_size > most_bytes:
            raise ModelFileError(f"{path}: {path.stat().st_size:,} bytes are too many for a configuration")
        data = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path}: is not valid JSON ({error}); it is {describe_file(path)}") from error
    if not isinstance(data, dict):
        raise ModelFileError(f"{path}: expected a JSON object with settings, found a {type(data).__name__}")
    return data


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(64)
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read ({error.strerror})") from error
