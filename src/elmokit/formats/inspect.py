"""Recognise files by their first bytes, and read JSON with clear errors."""

import re
from codecs import getincrementaldecoder
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from elmokit.base import parse_json, shown
from elmokit.errors import ConfigError, ModelFileError

FileKind = Literal["hdf5", "zip", "json", "other"]

_MAX_JSON = 1024 * 1024  # configurations are small; a larger "JSON" is something else
_HDF5 = b"\x89HDF\r\n\x1a\n"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_WEB_PAGE = "a web page (the download gave an error page instead of the file)"
_MAGIC = (
    (_HDF5, "an HDF5 file"),
    (_ZIP[0], "a zip archive"),
    (_ZIP[1], "an empty zip archive"),
    (b"\x1f\x8b", "a gzip file"),
    (b"\xfd7zXZ\x00", "an xz file"),
    (b"\x28\xb5\x2f\xfd", "a zstandard file"),
    (b"version https://git-lfs", "a Git LFS pointer (the file itself was never fetched: run git lfs pull)"),
    (b"<!doctype", _WEB_PAGE),
    (b"<html", _WEB_PAGE),
    (b"\x80\x02", "a Python pickle"),
)


def describe_file(path: Path) -> str:
    """Say what a file seems to be, for messages.

    Example:
        >>> describe_file(Path("no-such-file")), describe_file(Path("a" * 1000))
        ('missing', 'missing')
    """
    try:
        there = path.exists()
    except OSError:  # the name is too long
        there = False
    if not there:
        return "missing"
    if path.is_dir():
        return "a folder"
    head = _head(path)
    if not head:
        return "empty"
    for magic, words in _MAGIC:
        if head.startswith(magic) or head.strip().lower().startswith(magic):
            return words
    if head.lstrip()[:1] in (b"{", b"["):
        return "a JSON or text file"
    return "a text file" if _is_text(head) else "of an unknown kind"


def _is_text(head: bytes) -> bool:
    """Return whether bytes are UTF-8 without control characters; the last character may not be whole."""
    try:
        text = getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return not re.search(r"[\0-\x08\x0e-\x1f]", text)


def file_kind(path: Path) -> FileKind:
    """Return which kind of file to open it as, by its content."""
    head = _head(path)
    if head.startswith(_HDF5):
        return "hdf5"
    if head.startswith(_ZIP):
        return "zip"
    return "json" if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{") else "other"


def read_json(path: Path, *, most_bytes: int = _MAX_JSON, values: int = 0) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        ModelFileError: the file cannot be read, is too large, or holds something else.
    """
    try:
        if path.stat().st_size > most_bytes:
            raise ModelFileError(f"{path}: {path.stat().st_size:,} bytes are too many for a configuration")
        data = parse_json(path.read_text(encoding="utf-8-sig"), values=values)
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise ModelFileError(f"{path}: is not valid JSON ({error}); it is {describe_file(path)}") from error
    if not isinstance(data, dict):
        raise ModelFileError(f"{path}: expected a JSON object with settings, found a {type(data).__name__}")
    return data


def try_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; an empty one if it holds something else or cannot be read."""
    with suppress(ModelFileError):
        if path.is_file() and file_kind(path) == "json":
            return read_json(path)
    return {}


def read_section(data: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    """Return a nested object of parsed JSON.

    Raises:
        ConfigError: it is missing, or not an object.
    """
    section = data.get(name)
    if not isinstance(section, Mapping):
        raise ConfigError(f"{where}: {name!r} must be an object with settings, found {shown(section)}")
    return section


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(64)
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read ({error.strerror})") from error
