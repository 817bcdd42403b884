"""Zips that are damaged or hostile."""

import gzip
import os
import struct
import zipfile

import pytest

from elmokit import ModelFileError
from elmokit.formats import load_model
from tests.tiny import write_folder, write_zip


@pytest.fixture
def archive(tmp_path):
    return write_zip(tmp_path / "model.zip", write_folder(tmp_path / "model"))


def refuses(message, path):
    with pytest.raises(ModelFileError) as caught:
        load_model(path)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        "../evil.txt",
        "a/../../evil.txt",
        "/tmp/evil.txt",
        "..\\evil.txt",
        "C:\\evil.txt",
        "\\evil.txt",
        "C:evil",
    ],
)
def test_names_that_lead_outside(archive, tmp_path, name):
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr(name, "evil")
    refuses("refused: ", archive)
    refuses("leads out of the archive", archive)
    assert not list(tmp_path.rglob("*evil*"))


def test_a_bomb(archive):
    with zipfile.ZipFile(archive, "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr("zeros", bytes(20_000_000))
    refuses("bytes would unpack to 20,0", archive)


def test_a_bomb_that_lies_about_its_size(archive):
    """The directory says 10 bytes, the content is 20 MB: no more than declared is unpacked."""
    with zipfile.ZipFile(archive, "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr("zeros", bytes(20_000_000))
    content = archive.read_bytes()
    archive.write_bytes(content.replace(struct.pack("<L", 20_000_000), struct.pack("<L", 10)))
    refuses("the zip archive is damaged (", archive)


def test_a_bomb_within(archive):
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr("vocab.txt.gz", gzip.compress(b"<S>\n</S>\n<UNK>\n" + b"a\n" * 10_000))
    assert load_model(archive).vocabulary is None


def test_too_many_files(archive):
    with zipfile.ZipFile(archive, "a") as file:
        for number in range(1001):
            file.writestr(f"{number}", "")
    refuses("in 1003 files, which no model does", archive)


def test_damaged(archive):
    content = archive.read_bytes()
    archive.write_bytes(content[: len(content) // 2])
    refuses("the zip archive is damaged (", archive)
    archive.write_bytes(content[:1000] + bytes(500) + content[1500:])
    refuses("the zip archive is damaged (", archive)


def test_empty(tmp_path):
    with zipfile.ZipFile(tmp_path / "empty.zip", "w"):
        pass
    refuses("holds no options file", tmp_path / "empty.zip")


def test_encrypted(archive):
    content = bytearray(archive.read_bytes())
    content[content.rindex(b"PK\x01\x02") + 8] |= 1
    archive.write_bytes(content)
    refuses("in it is encrypted; unpack it yourself first", archive)


def test_a_file_where_a_folder_should_be(archive):
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr("options.json/inner", "x")
    refuses("'options.json/inner' in it cannot be unpacked", archive)


def test_links_become_plain_files(archive, tmp_path):
    """A link in a zip is a small file that says where it leads; it is never followed."""
    (tmp_path / "secret").write_text("{}")
    info = zipfile.ZipInfo("link.json")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr(info, os.fspath(tmp_path / "secret"))
    load_model(archive)


def test_nothing_is_left_in_the_temporary_folder(archive, tmp_path, monkeypatch):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    load_model(archive)
    content = archive.read_bytes()
    archive.write_bytes(content[:1000] + bytes(500) + content[1500:])
    refuses("damaged", archive)
    assert not list((tmp_path / "tmp").iterdir())
