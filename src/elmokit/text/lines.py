"""Read lines of text from plain or compressed files and from standard input, with bounded memory."""

import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from elmokit.errors import DataError, MissingExtra

_GZIP_MAGIC = b"\x1f\x8b"
_XZ_MAGIC = b"\xfd7zXZ\x00"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
_ZSTD_CHUNK = 16_384  # compressed bytes per step; repetitive text grows a thousandfold when decompressed


def is_file(name: str | Path) -> bool:
    """Return whether there is a file of this name; False too for a string that cannot be a file name."""
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False


def read_lines(path: str | Path) -> Iterator[str]:
    r"""Read a UTF-8 text line by line; gzip, xz and Zstandard are recognised by content, not by name.

    Lines end with `\n` or `\r\n` only, and are returned without it. A byte order mark is dropped.

    Args:
        path: A file, or `"-"` for standard input.

    Raises:
        DataError: The path is not a file, or its content is not UTF-8 text, is damaged or incomplete.
        MissingExtra: The file is Zstandard and the zstandard library is not installed.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "text.gz")
        ...     _ = file.write_bytes(gzip.compress("één\r\ntwee".encode()))
        ...     list(read_lines(file))
        ['één', 'twee']
    """
    # Checked outside the generator, so that the error is raised at the call.
    if str(path) != "-":
        if Path(path).is_dir():
            raise DataError(f"{path} is a folder, expected a text file; pass the files in it")
        if not Path(path).exists():
            raise DataError(f"{path} does not exist, expected a text file; check the path")
    return _decoded_lines(path)


def _decoded_lines(path: str | Path) -> Iterator[str]:
    """Decode the lines of a file that exists; errors name the line."""
    name = "standard input" if str(path) == "-" else str(path)
    position = 0
    try:
        with _open_raw(path) as raw, _open_plain(raw) as stream:
            for number, line in enumerate(stream, start=1):
                yield _decode(line, name=name, number=number, position=position)
                position += len(line)
    except EOFError as error:
        raise DataError(
            f"{name} is incomplete: the compressed data ends before its end mark; copy or make the file again"
        ) from error
    except (gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
        raise DataError(
            f"{name} is damaged after {position} bytes of text: {error}; copy or make the file again"
        ) from error
    except OSError as error:
        raise DataError(f"{name} cannot be read: {error}; check the file and its permissions") from error


def _decode(line: bytes, *, name: str, number: int, position: int) -> str:
    """Decode one line, which starts at byte `position` of the text."""
    where = f"{name}, line {number}"
    if number == 1:
        if line.startswith(_UTF16_BOMS):
            raise DataError(f"{where}: found UTF-16, expected UTF-8; convert it: iconv -f UTF-16 -t UTF-8")
        line = line.removeprefix(_UTF8_BOM)
    if b"\0" in line:
        raise DataError(
            f"{where}: found a NUL byte, so this is not UTF-8 text; pass a text file, plain or compressed "
            "with gzip, xz or Zstandard"
        )
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{where}: {line[error.start]:#04x} at byte {position + error.start} of the text is not UTF-8; "
            "convert the file, e.g. iconv -f LATIN1 -t UTF-8, or repair it: iconv -f UTF-8 -t UTF-8 -c"
        ) from error
    return text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text


@contextmanager
def _open_raw(path: str | Path) -> Iterator[io.BufferedReader]:
    """Open a file or standard input as a stream of bytes with `peek`."""
    if str(path) != "-":
        with Path(path).open("rb") as file:
            yield file
        return
    stdin: Any = sys.stdin.buffer
    if hasattr(stdin, "peek"):
        yield stdin  # a second buffer would hold lines back until it is full
        return
    stream = io.BufferedReader(stdin)
    try:
        yield stream
    finally:
        stream.detach()  # do not close what was put in place of standard input


@contextmanager
def _open_plain(raw: io.BufferedReader) -> Iterator[IO[bytes]]:
    """Open a stream of the uncompressed bytes of `raw`."""
    magic = raw.peek(len(_XZ_MAGIC))
    if magic.startswith(_GZIP_MAGIC):
        with gzip.GzipFile(fileobj=raw) as stream:
            # A buffer is four times as fast as the readline of GzipFile.
            yield io.BufferedReader(cast(io.RawIOBase, stream))
    elif magic.startswith(_XZ_MAGIC):
        with lzma.open(raw) as stream:
            yield cast(IO[bytes], stream)
    elif magic.startswith(_ZSTD_MAGIC):
        yield io.BufferedReader(_ZstdReader(raw))
    else:
        yield raw


class _ZstdReader(io.RawIOBase):
    """Stream of Zstandard frames; the reader of the library does not notice an incomplete file."""

    def __init__(self, source: IO[bytes]) -> None:
        try:
            import zstandard
        except ImportError as error:
            raise MissingExtra("zstandard", "zstd", "reading Zstandard files") from error
        self._error: type[Exception] = zstandard.ZstdError
        self._source = source
        self._decompressor = zstandard.ZstdDecompressor()
        self._frame: Any = None
        self._compressed = b""
        self._plain = memoryview(b"")

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401  (any writable buffer, as in io.RawIOBase)
        """Fill `buffer` with uncompressed bytes; return their number, 0 at the end."""
        while not self._plain:
            self._compressed = self._compressed or self._source.read(_ZSTD_CHUNK)
            if not self._compressed:
                if self._frame is not None:
                    raise EOFError
                return 0
            self._frame = self._frame or self._decompressor.decompressobj()
            try:
                self._plain = memoryview(self._frame.decompress(self._compressed))
            except self._error as error:
                raise OSError(f"damaged Zstandard data ({error})") from error
            self._compressed = b""
            if self._frame.eof:
                self._compressed, self._frame = self._frame.unused_data, None
        size = min(len(buffer), len(self._plain))
        buffer[:size], self._plain = self._plain[:size], self._plain[size:]
        return size
