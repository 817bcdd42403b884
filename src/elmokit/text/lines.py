"""Read lines of text from plain or compressed files and from standard input, with bounded memory."""

from collections.abc import Generator
from pathlib import Path

from elmokit.base import TEXT, other_kind, plain_lines
from elmokit.errors import ConfigError, DataError

_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")


def is_file(name: str | Path) -> bool:
    """Return whether there is a file of this name; False too for a string that cannot be a file name."""
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False


def read_lines(path: str | Path, *, whole: bool = False) -> Generator[str, None, None]:
    r"""Read a UTF-8 text line by line; gzip, xz and Zstandard are recognised by content, not by name.

    Lines end with `\n` or `\r\n` only, and are returned without it. A byte order mark is dropped.

    Args:
        path: A file, or `"-"` for standard input.
        whole: Whether the caller keeps all lines: then a small file that unpacks to hundreds of times its
            size is refused.

    Raises:
        ConfigError: It is no path at all.
        DataError: The path is not a file, or its content is not UTF-8 text, is damaged or incomplete.
        MissingExtra: The file is Zstandard and the zstandard library is not installed.

    Example:
        >>> import gzip, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "text.gz")
        ...     _ = file.write_bytes(gzip.compress("één\r\ntwee".encode()))
        ...     list(read_lines(file))
        ['één', 'twee']
    """
    # Checked outside the generator, so that the error is raised at the call.
    if not isinstance(path, str | Path):
        raise ConfigError(f"expected the path of a text, or its lines, found {path!r:.60}")
    if str(path) != "-":
        wrong = other_kind(path, TEXT)
        if wrong is not None:
            raise DataError(f"{wrong}; pass a text file")
        if Path(path).is_dir():
            raise DataError(f"{path} is a folder, expected a text file; pass the files in it")
        if not Path(path).exists():
            raise DataError(f"{path} does not exist, expected a text file; check the path")
    return _decoded_lines(path, whole=whole)


def _decoded_lines(path: str | Path, *, whole: bool) -> Generator[str, None, None]:
    """Decode the lines of a file that exists; errors name the line."""
    name = "standard input" if str(path) == "-" else str(path)
    position = 0
    for number, line in enumerate(plain_lines(path, whole=whole), start=1):
        yield _decode(line, name=name, number=number, position=position)
        position += len(line)


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
            f"convert the file, e.g. iconv -f {_likely_encoding(line)} -t UTF-8, or repair it: "
            "iconv -f UTF-8 -t UTF-8 -c"
        ) from error
    return text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text


def _likely_encoding(line: bytes) -> str:
    """Return the encoding that makes most sense of a line: a Chinese one if it gives common characters."""
    for name, iconv in (("gb2312", "GB18030"), ("big5", "BIG5"), ("shift_jis", "SHIFT_JIS")):
        try:
            text = line.decode(name)
        except UnicodeDecodeError:
            continue
        # Two accented letters in a row are rare, and would make a Chinese character.
        if sum("\u3040" <= character <= "\u9fff" for character in text) >= 2:
            return iconv
    return "LATIN1"
