"""Files and folders that appear complete or not at all."""

import json
import math
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
    locked,
    move_files,
    plain_reason,
    remove_folder,
    remove_remains,
    temporary_folder,
    write_bytes,
    write_errors,
    write_json,
    write_text,
)
from elmokit.base import files as module
from elmokit.errors import DataError


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
        remove_remains(path)
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
    write_json(tmp_path / "d", {"perplexity": math.inf, "more": [math.nan, (1.5, "inf")]})
    assert json.loads((tmp_path / "d").read_text()) == {"perplexity": None, "more": [None, [1.5, "inf"]]}
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


def test_folders(tmp_path, monkeypatch):
    old = tmp_path / "old"
    old.mkdir()
    (old / "a").touch()
    assert names(fresh_folder(old)) == []
    (old / "a").write_text("new")
    (old / "b").write_text("new")
    target = fresh_folder(tmp_path / "target")
    (target / "a").write_text("old")
    (old / "z").write_text("new")
    moved = []
    replace = module.Path.replace
    monkeypatch.setattr(module.Path, "replace", lambda file, to: (moved.append(file.name), replace(file, to)))
    move_files(old, target, last="a")
    assert moved == ["b", "z", "a"]
    assert names(tmp_path) == ["target"]
    assert {path.name: path.read_text() for path in target.iterdir()} == dict.fromkeys("abz", "new")


def test_what_killed_processes_left_is_removed(tmp_path):
    out = tmp_path / "[out]"
    (tmp_path / ".[out].12345678.draft").mkdir()
    (tmp_path / ".[out].12345678.draft" / "a").touch()
    others = [".[out].b.12345678.draft", ".[out].novel.draft", ".o.12345678.draft", "kept.draft"]
    for name in others:
        (tmp_path / name).touch()
    (out / "inner").mkdir(parents=True)
    (out / "inner" / ".a.12345678.draft").touch()
    (out / "other").mkdir()
    with locked(out / "other"):  # someone else is writing this
        (out / ".other.12345678.draft").touch()
        (out / "other" / ".a.12345678.draft").touch()
        (out / ".dead.lock").touch()
        (out / ".dead.12345678.draft").touch()
        remove_remains(out)
    assert names(tmp_path) == sorted([*others, "[out]"])
    assert names(out) == [".other.12345678.draft", "inner", "other"]
    assert names(out / "inner") == []
    assert names(out / "other") == [".a.12345678.draft"]


@pytest.mark.parametrize("replaced", [False, True])
def test_a_folder_that_was_being_replaced_comes_back(tmp_path, replaced):
    old = tmp_path / ".out.12345678.replaced"
    old.mkdir()
    (old / "old").touch()
    if replaced:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "new").touch()
    remove_remains(tmp_path / "out")
    assert names(tmp_path) == ["out"]
    assert names(tmp_path / "out") == ["new" if replaced else "old"]


def test_folders_change_places_where_the_system_cannot_do_it_in_one_step(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_RENAME_EXCHANGE", 1 << 20)  # no such flag
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").touch()
    with draft_folder(tmp_path / "out", overwrite=True) as draft:
        (draft / "new").touch()
    assert names(tmp_path) == ["out"]
    assert names(tmp_path / "out") == ["new"]


def test_a_folder_is_removed_as_a_whole(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").touch()
    with monkeypatch.context() as killed:
        killed.setattr(module.shutil, "rmtree", lambda *_, **__: None)
        remove_folder(tmp_path / "a")
    assert not (tmp_path / "a").exists()
    remove_remains(tmp_path / "a")
    assert names(tmp_path) == []
    remove_folder(tmp_path / "a")  # is not there


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(28, "No space left on device"), "No space left on device; free some space; go on"),
        (OSError(13, "Permission denied"), "Permission denied; go on"),
        (RuntimeError("odd\nframe #1"), "odd; the disk may be full; go on"),
    ],
)
def test_errors_of_writing_say_what_to_do(error, message):
    with (
        pytest.raises(DataError, match=rf"^cannot write out: {message}$"),
        write_errors(module.Path("out"), lambda: "go on", also=(RuntimeError,)),
    ):
        raise error


def test_a_temporary_folder_is_removed():
    with temporary_folder() as folder:
        (folder / "a").touch()
    assert not folder.exists()


def test_reasons():
    assert plain_reason(OSError(28, "No space left on device")) == "No space left on device"
    assert plain_reason(ValueError("odd")) == "odd"
