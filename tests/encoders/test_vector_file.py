"""Files of word vectors."""

import gzip
import lzma
import struct

import numpy as np
import pytest

from elmokit import DataError
from elmokit.encoders.vector_file import WordVectors, read_word_vectors, write_word_vectors

TABLE = [[1.0, 2.5], [-3.0, 4e-2]]


def check(found):
    assert list(found.rows) == ["a", "b"]
    np.testing.assert_array_equal(found.table, np.array(TABLE, np.float32))


@pytest.mark.parametrize("header", ["", "2 2\n"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_text(tmp_path, header, pack):
    path = tmp_path / "vectors.vec"
    path.write_bytes(pack(f"{header}a 1 2.5\nb -3 4e-2 \na 9 9\n".encode()))
    check(read_word_vectors(path))


def test_words_with_blanks(tmp_path):
    (tmp_path / "v.txt").write_text("a 1 2\n. . . 3 4\n")
    found = read_word_vectors(tmp_path / "v.txt")
    assert list(found.rows) == ["a", ". . ."]
    assert found.table.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("end", [b"", b"\n"])
@pytest.mark.parametrize("ending", [".bin", ".bin.gz"])
def test_binary(tmp_path, end, ending):
    entries = [
        word + b" " + struct.pack("<2f", *row) + end for word, row in zip(b"a b".split(), TABLE, strict=True)
    ]
    content = b"2 2\n" + b"".join(entries)
    path = tmp_path / f"v{ending}"
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    check(read_word_vectors(path))


def test_written_and_read(tmp_path):
    table = np.array(TABLE, np.float32)
    write_word_vectors(WordVectors({"a": 0, "b": 1}, table), tmp_path / "v.npy")
    check(read_word_vectors(tmp_path / "v.npy"))
    odd = {". . .": 0, "at name@domain.com": 1}
    write_word_vectors(WordVectors(odd, table), tmp_path / "v.npy")
    assert read_word_vectors(tmp_path / "v.npy").rows == odd
    (tmp_path / "v.json").write_text('["a"]')
    with pytest.raises(DataError, match="has 2 vectors for 1 words"):
        read_word_vectors(tmp_path / "v.npy")
    (tmp_path / "v.json").unlink()
    with pytest.raises(DataError, match="cannot be read"):
        read_word_vectors(tmp_path / "v.npy")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("v.txt", b"a 1 2\nb 1\n", "v.txt, line 2: expected a word and 2 numbers, found 'b 1'"),
        ("v.txt", b"1 2\na 1 x\n", "v.txt, line 2: expected a word and 2 numbers, found 'a 1 x'"),
        ("v.txt", b"", "v.txt, line 1: expected a word and its numbers, or how many words and dimensions"),
        ("v.bin", b"a b\n", "two numbers, found b'a b"),
        ("v.bin", b"2 2\na \0\0", "v.bin is truncated at b'a'"),
        (
            "v.bin",
            struct.pack("<i", 793712314) + b"\n",
            "is a fastText model, expected vectors; take its .vec file",
        ),
    ],
)
def test_damaged(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as refused:
        read_word_vectors(tmp_path / name)
    assert message in str(refused.value)


@pytest.mark.parametrize("name", ["missing.txt", "missing.bin"])
def test_missing(tmp_path, name):
    with pytest.raises(DataError, match="does not exist"):
        read_word_vectors(tmp_path / name)
