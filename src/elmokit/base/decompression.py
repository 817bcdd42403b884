"""Read files that may be compressed. This is the one place that decompresses, and its memory is bounded.

gzip, xz and Zstandard are recognised by content, not by name. A stream of any length is fine for a caller
that forgets what it has read. A caller that keeps everything says so (`whole`): then a small file that would
unpack to hundreds of times its size is refused.
"""

import gzip
import io
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from elmokit.errors import DataError, MissingExtra

_GZIP = b"\x1f\x8b"
_XZ = b"\xfd7zXZ\x00"
_ZSTD = b"\x28\xb5\x2f\xfd"
_ENDINGS = (".gz", ".xz", ".zst")

MAX_RATIO = 50  # of archives: their vocabularies compress up to twentyfold, their weights hardly
SLACK = 1024 * 1024  # very small files may compress better than that
# A short line of text takes a hundred times as much memory as its letters.
_TEXT_RATIO, _TEXT_SLACK = 20, 128 * 1024
_LONGEST_LINE = 16 * 1024 * 1024
_WINDOW = 128 * 1024 * 1024  # what xz and Zstandard may remember of the text before; xz -9 needs 65 MB
_BUFFER = 64 * 1024
_ZSTD_CHUNK = 256  # compressed bytes per step, of which Zstandard may make 8 MB


def is_compressed(head: bytes) -> bool:
    """Return whether these are the first bytes of a gzip, xz or Zstandard file."""
    return head.startswith((_GZIP, _XZ, _ZSTD))


def text_ending(path: str | Path) -> str:
    """Return what the name of a file ends with before the ending of its compression, in lower case.

    Example:
        >>> text_ending("mails.JSONL.gz"), text_ending("mails.xz")
        ('.jsonl', '')
    """
    endings = [ending.lower() for ending in Path(path).suffixes]
    return next((ending for ending in reversed(endings) if ending not in _ENDINGS), "")


def has_packed_ending(path: str | Path) -> bool:
    """Return whether the name of a file says that it is compressed."""
    return Path(path).suffix.lower() in _ENDINGS


def packed_or_plain(path: Path) -> Path | None:
    """Return the file, or the compressed file of that name with an ending more, or None if neither exists."""
    candidates = (path, *(path.with_name(path.name + ending) for ending in _ENDINGS))
    return next((one for one in candidates if one.exists()), None)


def plain_lines(path: str | Path, *, whole: bool = False) -> Iterator[bytes]:
    """Yield the lines of a file, plain or compressed, with their ends; the arguments are `open_plain`'s.

    Raises:
        DataError: As `open_plain`; or a line has more than 16 MB and the file itself is smaller than that.
    """
    with open_plain(path, whole=whole) as stream:
        most = max(_LONGEST_LINE, _size(stream) or 0) + 1
        number = 0
        while line := stream.readline(most):
            number += 1
            if len(line) == most:
                raise DataError(
                    f"{_name(path)}, line {number}: has more than {most:,} bytes, expected lines of text; "
                    "break it into lines"
                )
            yield line


@contextmanager
def open_plain(path: str | Path, *, whole: bool = False) -> Iterator[io.BufferedReader]:
    """Open the uncompressed bytes of a file for reading.

    Args:
        path: A file, or "-" for standard input.
        whole: Whether the caller keeps all it reads.

    Raises:
        DataError: The file cannot be read, is damaged or incomplete; or `whole` is set and it unpacks to more
            than twenty times its size. Also raised while the stream is read.
        MissingExtra: The file is Zstandard and the zstandard library is not installed.
    """
    name, unpacked = _name(path), None
    try:
        with _open_raw(path) as raw:
            unpacked = _decompressor(raw)
            if unpacked is None:
                yield raw
                return
            size = _size(raw)
            counted = _Counted(
                unpacked, _TEXT_RATIO * size + _TEXT_SLACK if whole and size is not None else None
            )
            with unpacked:
                yield io.BufferedReader(counted, _BUFFER)
    except _TooMuch as error:
        raise DataError(
            f"{name}: refused: it unpacks to more than {error} bytes, over {_TEXT_RATIO} times its size; if "
            "you trust it, decompress it yourself"
        ) from None
    except EOFError as error:
        raise DataError(
            f"{name} is incomplete: the compressed data ends before its end mark; copy or make the file again"
        ) from error
    except (gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
        raise DataError(f"{name} is damaged: {error}; copy or make the file again") from error
    except OSError as error:
        raise DataError(f"{name} cannot be read: {error}; check the file and its permissions") from error


def _name(path: str | Path) -> str:
    return "standard input" if str(path) == "-" else str(path)


@contextmanager
def _open_raw(path: str | Path) -> Iterator[io.BufferedReader]:
    """Open a file or standard input as a stream of bytes with `peek`."""
    if str(path) != "-":
        with Path(path).open("rb") as file:
            yield file
        return
    stdin = sys.stdin  # kept: Python aborts at its end if it closes what a thread still reads
    stdin_bytes: Any = stdin.buffer
    if hasattr(stdin_bytes, "peek"):
        yield stdin_bytes  # a second buffer would hold lines back until it is full
        return
    stream = io.BufferedReader(stdin_bytes)
    try:
        yield stream
    finally:
        stream.detach()  # do not close what was put in place of standard input


def _size(stream: Any) -> int | None:  # noqa: ANN401 (any stream)
    """Return the size of a regular file; None for a pipe and the like."""
    try:
        found = os.fstat(stream.fileno())
    except (OSError, AttributeError):
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def _decompressor(raw: io.BufferedReader) -> Any:  # noqa: ANN401 (a stream with readinto)
    magic = raw.peek(len(_XZ))
    if magic.startswith(_GZIP):
        return gzip.GzipFile(fileobj=raw)
    if magic.startswith(_XZ):
        return _XzReader(raw)
    return _ZstdReader(raw) if magic.startswith(_ZSTD) else None


class _TooMuch(Exception):
    """A file unpacks to more than it may."""


class _Counted(io.RawIOBase):
    """A stream of which no more than a number of bytes may be read."""

    def __init__(self, source: Any, most: int | None) -> None:  # noqa: ANN401 (a stream with readinto)
        self._source, self._most, self._count = source, most, 0

    def fileno(self) -> int:
        """Return the descriptor of the compressed file."""
        return int(self._source.fileno())

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 (any writable buffer, as in io.RawIOBase)
        """Fill `buffer`; return the number of bytes, 0 at the end."""
        size = int(self._source.readinto(buffer))
        self._count += size
        if self._most is not None and self._count > self._most:
            raise _TooMuch(f"{self._most:,}")
        return size


class _Unpacked(io.RawIOBase):
    """A stream of uncompressed bytes, which `_next` returns piece by piece; an empty piece is the end."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._plain = memoryview(b"")

    def fileno(self) -> int:
        """Return the descriptor of the compressed file."""
        return self._source.fileno()

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401  (any writable buffer, as in io.RawIOBase)
        """Fill `buffer` with uncompressed bytes; return their number, 0 at the end."""
        if not self._plain:
            self._plain = memoryview(self._next())
        size = min(len(buffer), len(self._plain))
        buffer[:size], self._plain = self._plain[:size], self._plain[size:]
        return size

    def _next(self) -> bytes:
        raise NotImplementedError


class _XzReader(_Unpacked):
    """Stream of xz data; unlike `lzma.open` it limits the memory that a file may ask for."""

    _stream: lzma.LZMADecompressor | None = None
    _compressed = b""

    def _next(self) -> bytes:
        plain = b""
        while not plain:
            if self._stream is None or self._stream.needs_input:
                self._compressed = self._compressed or self._source.read(_BUFFER)
                if not self._compressed:
                    if self._stream is not None:
                        raise EOFError
                    return b""
            if self._stream is None:
                self._compressed = self._compressed.lstrip(b"\0")  # padding between streams
                if not self._compressed:
                    continue
                self._stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_WINDOW)
            plain = self._stream.decompress(self._compressed, _BUFFER)
            self._compressed = b""
            if self._stream.eof:
                self._compressed, self._stream = self._stream.unused_data, None
        return plain


class _ZstdReader(_Unpacked):
    """Stream of Zstandard frames; the reader of the library does not notice an incomplete file."""

    def __init__(self, source: IO[bytes]) -> None:
        super().__init__(source)
        try:
            import zstandard
        except ImportError as error:
            raise MissingExtra("zstandard", "zstd", "reading Zstandard files") from error
        self._error: type[Exception] = zstandard.ZstdError
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
        self._frame: Any = None
        self._compressed = b""

    def _next(self) -> bytes:
        plain = b""
        while not plain:
            self._compressed = self._compressed or self._source.read(_ZSTD_CHUNK)
            if not self._compressed:
                if self._frame is not None:
                    raise EOFError
                return b""
            self._frame = self._frame or self._decompressor.decompressobj()
            try:
                plain = self._frame.decompress(self._compressed)
            except self._error as error:
                raise OSError(f"damaged Zstandard data ({error})") from error
            self._compressed = b""
            if self._frame.eof:
                self._compressed, self._frame = self._frame.unused_data, None
        return plain
