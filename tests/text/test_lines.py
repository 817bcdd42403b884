import gzip
import io
import lzma
import subprocess
import sys

import pytest
import zstandard

from elmokit.errors import ConfigError, DataError, MissingExtra
from elmokit.text import read_lines

TEXT = "één\nzwei\u2028drei\x85vier\r\nfünf\n\n终"
LINES = ["één", "zwei\u2028drei\x85vier", "fünf", "", "终"]

COMPRESS = {
    "plain": bytes,
    "gz": gzip.compress,
    "xz": lzma.compress,
    "zst": lambda data: zstandard.ZstdCompressor().compress(data),
}


@pytest.mark.parametrize("kind", COMPRESS)
def test_lines_end_at_line_feeds_only_whatever_the_name(tmp_path, kind):
    file = tmp_path / "corpus.dat"
    file.write_bytes(COMPRESS[kind](TEXT.encode()))
    assert list(read_lines(file)) == LINES
    assert list(read_lines(str(file))) == LINES


@pytest.mark.parametrize("kind", ["gz", "xz", "zst"])
def test_files_of_several_parts(tmp_path, kind):
    file = tmp_path / "parts"
    file.write_bytes(COMPRESS[kind](b"a\nb") + COMPRESS[kind](b"c\n"))
    assert list(read_lines(file)) == ["a", "bc"]


@pytest.mark.parametrize("kind", COMPRESS)
def test_empty_file(tmp_path, kind):
    file = tmp_path / "empty"
    file.write_bytes(COMPRESS[kind](b""))
    assert list(read_lines(file)) == []


def test_byte_order_mark_is_dropped(tmp_path):
    file = tmp_path / "bom.txt"
    file.write_bytes(b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n")
    assert list(read_lines(file)) == ["a", "\ufeffb"]  # only at the beginning is it one


@pytest.mark.parametrize("kind", ["gz", "xz", "zst"])
def test_truncated_file_says_so(tmp_path, kind):
    file = tmp_path / f"cut.{kind}"
    whole = COMPRESS[kind]("\n".join(str(number * 7919) for number in range(50_000)).encode())
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=rf"cut\.{kind} is incomplete.*copy or make the file again"):
        list(read_lines(file))


@pytest.mark.parametrize("kind", ["gz", "xz", "zst"])
def test_damaged_file_says_so(tmp_path, kind):
    file = tmp_path / "damaged"
    whole = bytearray(COMPRESS[kind]("\n".join(str(number * 7919) for number in range(50_000)).encode()))
    whole[len(whole) // 2 : len(whole) // 2 + 40] = b"\xff" * 40
    file.write_bytes(whole)
    with pytest.raises(DataError, match="damaged"):
        list(read_lines(file))


def test_invalid_utf8_names_line_and_byte(tmp_path):
    file = tmp_path / "latin.txt"
    file.write_bytes(b"good\nbad \xe9t\xe9\n")
    lines = read_lines(file)
    assert next(lines) == "good"
    with pytest.raises(DataError, match=r"latin\.txt, line 2: 0xe9 at byte 9 .*iconv -f LATIN1"):
        next(lines)


def test_binary_and_utf16_are_told_apart(tmp_path):
    (tmp_path / "binary").write_bytes(b"\x89HDF\0\0\n")
    (tmp_path / "binary-first").write_bytes(b"ab\0c")
    (tmp_path / "utf16").write_bytes("abc\n".encode("utf-16"))
    with pytest.raises(DataError, match="line 1: found a NUL byte"):
        list(read_lines(tmp_path / "binary-first"))
    with pytest.raises(DataError, match="line 1"):
        list(read_lines(tmp_path / "binary"))
    with pytest.raises(DataError, match="found UTF-16, expected UTF-8"):
        list(read_lines(tmp_path / "utf16"))


def test_missing_file_and_folder_are_told_at_the_call(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        read_lines(tmp_path / "none.txt")
    with pytest.raises(DataError, match="is a folder"):
        read_lines(tmp_path)


@pytest.mark.parametrize("kind", COMPRESS)
def test_standard_input_stays_open(monkeypatch, kind):
    stdin = io.TextIOWrapper(io.BytesIO(COMPRESS[kind](b"a\nb\n")))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert list(read_lines("-")) == ["a", "b"]
    assert not stdin.buffer.closed


def test_lines_of_a_pipe_come_as_they_are_written():
    script = (
        "from elmokit.text import read_lines\nfor line in read_lines('-'): print(line.upper(), flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        process.stdin.write("one\n")
        process.stdin.flush()
        assert process.stdout.readline() == "ONE\n"
        process.stdin.write("two\n")
        process.stdin.close()
        assert process.stdout.read() == "TWO\n"


def test_zstandard_without_its_library(tmp_path, monkeypatch):
    file = tmp_path / "text.zst"
    file.write_bytes(COMPRESS["zst"](b"a\n"))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtra, match=r"pip install 'elmokit\[zstd\]'"):
        list(read_lines(file))


@pytest.mark.parametrize(
    ("encoding", "text", "advice"),
    [
        ("gbk", "银行提高了利率", "GB18030"),
        ("big5", "銀行提高了利率", "BIG5"),
        ("shift_jis", "これはテストです", "SHIFT_JIS"),
        ("latin-1", "café né à Évreux", "LATIN1"),
    ],
)
def test_the_advice_fits_the_encoding(tmp_path, encoding, text, advice):
    path = tmp_path / "text.txt"
    path.write_bytes(f"{text}\n".encode(encoding))
    with pytest.raises(DataError, match=f"iconv -f {advice} -t UTF-8"):
        list(read_lines(path))


def test_what_is_no_path_is_refused():
    with pytest.raises(ConfigError, match="expected the path of a text, or its lines, found None"):
        read_lines(None)
