"""Files and folders that appear complete or not at all."""

import json
import os
import stat
import subprocess
import sys
import threading

import pytest

from elmokit.base import (
    draft_file,
    draft_folder,
    flush_to_disk,
    fresh_folder,
    move_files,
    plain_reason,
    remove_drafts,
    temporary_folder,
    write_bytes,
    write_json,
    write_text,
)
from elmokit.base import files as module


def names(folder):
    return sorted(path.name for path in folder.iterdir())


class TestDraftFile:
    def test_the_old_file_stays_until_the_new_one_is_complete(self, tmp_path):
        path = tmp_path / "a.txt"
        path.write_text("old")
        with draft_file(path) as draft:
            draft.write_text("new")
            assert path.read_text() == "old"
            assert draft.parent == path.parent  # a rename cannot cross file systems
        assert path.read_text() == "new"
        assert names(tmp_path) == ["a.txt"]

    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
    def test_after_an_error_nothing_has_changed(self, tmp_path, error):
        path = tmp_path / "a.txt"
        path.write_text("old")

        def write_half():
            with draft_file(path) as draft:
                draft.write_text("half")
                raise error

        with pytest.raises(error):
            write_half()
        assert path.read_text() == "old"
        assert names(tmp_path) == ["a.txt"]

    def test_after_a_kill_the_old_file_is_there(self, tmp_path):
        path = tmp_path / "a.txt"
        path.write_text("old")
        code = (
            "import os, pathlib, sys; from elmokit.base import draft_file\n"
            "with draft_file(pathlib.Path(sys.argv[1])) as draft:\n"
            "    draft.write_text('half'); os._exit(9)"
        )
        assert subprocess.run([sys.executable, "-c", code, str(path)]).returncode == 9
        assert path.read_text() == "old"
        assert len(names(tmp_path)) == 2
        remove_drafts(tmp_path)
        assert names(tmp_path) == ["a.txt"]

    def test_a_link_stays_a_link(self, tmp_path):
        real, link = tmp_path / "folder" / "real.txt", tmp_path / "link.txt"
        real.parent.mkdir()
        link.symlink_to(real)
        write_text(link, "new")
        assert link.is_symlink()
        assert real.read_text() == "new"

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
    def test_a_pipe_is_written_directly(self, tmp_path):
        pipe, read = tmp_path / "pipe", []
        os.mkfifo(pipe)
        reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
        reader.start()
        write_text(pipe, "new")
        reader.join()
        assert read == ["new"]
        assert names(tmp_path) == ["pipe"]

    def test_a_missing_folder(self, tmp_path):
        with pytest.raises(FileNotFoundError), draft_file(tmp_path / "missing" / "a.txt"):
            pass

    @pytest.mark.skipif(os.name == "nt", reason="Windows has no umask")
    def test_permissions_are_those_of_a_new_file(self, tmp_path):
        before = os.umask(0o027)
        try:
            with draft_file(tmp_path / "a.txt") as draft:
                draft.unlink()
                draft.touch(mode=0o600)
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o640


class TestDraftFolder:
    def test_it_appears_complete(self, tmp_path):
        path = tmp_path / "out"
        with draft_folder(path) as draft:
            (draft / "inner").mkdir()
            (draft / "inner" / "a.txt").write_text("a")
            assert not path.exists()
        assert (path / "inner" / "a.txt").read_text() == "a"
        assert names(tmp_path) == ["out"]

    def test_an_empty_folder_is_replaced_and_a_full_one_is_not(self, tmp_path):
        path = tmp_path / "out"
        path.mkdir()
        with draft_folder(path) as draft:
            (draft / "a.txt").touch()
        with pytest.raises(OSError, match="not empty"), draft_folder(path):
            pass
        assert names(path) == ["a.txt"]
        assert names(tmp_path) == ["out"]

    @pytest.mark.parametrize("fails", [False, True])
    def test_overwriting(self, tmp_path, fails):
        path = tmp_path / "out"
        path.mkdir()
        (path / "old.txt").touch()
        try:
            with draft_folder(path, overwrite=True) as draft:
                (draft / "new.txt").touch()
                assert names(path) == ["old.txt"]
                if fails:
                    raise ValueError
        except ValueError:
            pass
        assert names(path) == ["old.txt" if fails else "new.txt"]
        assert names(tmp_path) == ["out"]

    def test_the_working_folder(self, tmp_path, monkeypatch):
        (tmp_path / "out").mkdir()
        monkeypatch.chdir(tmp_path / "out")
        with draft_folder(module.Path()) as draft:
            (draft / "a.txt").touch()
        monkeypatch.chdir(tmp_path)
        assert names(tmp_path / "out") == ["a.txt"]


def test_contents(tmp_path):
    write_bytes(tmp_path / "a", b"\x00\xff")
    write_text(tmp_path / "b", "né\udc80\n")
    write_json(tmp_path / "c", {"word": "né"})
    assert (tmp_path / "a").read_bytes() == b"\x00\xff"
    assert (tmp_path / "b").read_text("utf-8") == "né\\udc80\n"
    assert "né" in (tmp_path / "c").read_text("utf-8")
    assert json.loads((tmp_path / "c").read_text("utf-8")) == {"word": "né"}


def test_windows_cannot_flush_a_folder(tmp_path, monkeypatch):
    flushed = []
    monkeypatch.setattr(os, "fsync", flushed.append)
    (tmp_path / "a").touch()
    flush_to_disk(tmp_path)
    assert len(flushed) == 1
    monkeypatch.setattr(module, "_WINDOWS", True)
    flush_to_disk(tmp_path)
    assert len(flushed) == 1
    flush_to_disk(tmp_path / "a")
    assert len(flushed) == 2


def test_folders(tmp_path):
    old = tmp_path / "old"
    old.mkdir()
    (old / "a").touch()
    assert names(fresh_folder(old)) == []
    (old / "a").write_text("new")
    (old / "b").write_text("new")
    target = fresh_folder(tmp_path / "target")
    (target / "a").write_text("old")
    move_files(old, target)
    assert names(tmp_path) == ["target"]
    assert {path.name: path.read_text() for path in target.iterdir()} == {"a": "new", "b": "new"}


def test_drafts_of_folders_are_removed_too(tmp_path):
    (tmp_path / ".out.12345678.draft").mkdir()
    (tmp_path / ".out.12345678.draft" / "a").touch()
    (tmp_path / "kept.draft").touch()
    remove_drafts(tmp_path)
    assert names(tmp_path) == ["kept.draft"]


def test_only_the_drafts_of_one_name_are_removed(tmp_path):
    for name in (".[a].12345678.draft", ".a.12345678.draft", ".a.b.12345678.draft"):
        (tmp_path / name).touch()
    remove_drafts(tmp_path, "[a]")
    assert names(tmp_path) == [".a.12345678.draft", ".a.b.12345678.draft"]
    remove_drafts(tmp_path, "a")
    assert names(tmp_path) == [".a.b.12345678.draft"]


def test_a_temporary_folder_is_removed():
    with temporary_folder() as folder:
        (folder / "a").touch()
    assert not folder.exists()


def test_reasons():
    assert plain_reason(OSError(28, "No space left on device")) == "No space left on device"
    assert plain_reason(ValueError("odd")) == "odd"
