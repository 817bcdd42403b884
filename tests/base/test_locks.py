"""Two processes never write one output."""

import os
import re
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from elmokit.base import locked, ordered_map
from elmokit.errors import BusyError, DataError


def hold(output):
    """Start a process that holds the output until its standard input closes."""
    script = f"""
        import sys
        from pathlib import Path
        from elmokit.base.locks import locked
        with locked(Path({str(output)!r}), parents=True):
            print("held", flush=True)
            sys.stdin.read()
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"held\n"
    return process


def test_the_second_process_is_told_who_holds_the_output(tmp_path):
    output = tmp_path / "new" / "out.npy"
    other = hold(output)
    message = (
        rf"{re.escape(str(output))} is being written by process {other.pid} on \S+ since \d.*; wait for it"
    )
    with pytest.raises(BusyError, match=message), locked(output, parents=True):
        pass
    other.communicate()
    with locked(output):
        pass
    assert list(output.parent.iterdir()) == []


def test_death_releases_the_lock(tmp_path):
    other = hold(tmp_path / "out")
    other.send_signal(signal.SIGKILL)
    other.communicate()
    assert (tmp_path / ".out.lock").exists()
    with locked(tmp_path / "out"):
        pass
    assert not (tmp_path / ".out.lock").exists()


def hold_here(output, **settings):
    with locked(output, **settings):
        pass


def test_another_thread_is_another_writer_and_the_same_one_may_enter_again(tmp_path):
    with ThreadPoolExecutor(1) as other, locked(tmp_path / "a"), locked(tmp_path / "b"):
        hold_here(tmp_path / "a")
        refused = other.submit(hold_here, tmp_path / "a").exception()
        assert isinstance(refused, BusyError)
        assert f"process {os.getpid()} on" in str(refused)
    hold_here(tmp_path / "a")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_holds_nothing(tmp_path):
    with locked(tmp_path / "a"):
        forked = ordered_map(lambda _: os.getpid(), [0, 0, 0], workers=1)
        assert next(forked) != os.getpid()
    hold_here(tmp_path / "a")  # though the forked process is still alive
    forked.close()


def test_one_may_wait_for_the_holder(tmp_path):
    other, said = hold(tmp_path / "a"), []

    def wait(message):
        said.append(message)
        other.communicate()

    hold_here(tmp_path / "a", wait=wait)
    assert len(said) == 1
    assert f"is being written by process {other.pid} on" in said[0]
    assert said[0].endswith("; waiting for it")


def test_what_a_killed_process_left_is_removed(tmp_path):
    (tmp_path / ".a.12345678.draft").touch()
    with locked(tmp_path / "a"):
        assert [path.name for path in tmp_path.iterdir()] == [".a.lock"]


def test_a_place_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"cannot write .*file/a/b: .*; choose a place you may write to"):
        hold_here(tmp_path / "file" / "a" / "b", parents=True)
    with pytest.raises(DataError, match=r"cannot write .*missing/a: No such file or directory"):
        hold_here(tmp_path / "missing" / "a")
    (tmp_path / "out").mkdir()
    plain = os.open

    def read_only(path, *arguments):
        if str(path).endswith(".lock"):
            raise PermissionError(13, "Permission denied")
        return plain(path, *arguments)

    monkeypatch.setattr(os, "open", read_only)  # root may write anywhere, so a mode would not do
    with pytest.raises(DataError, match=r"cannot write .*: Permission denied"):
        hold_here(tmp_path / "a")
    with locked(tmp_path / "out"), ThreadPoolExecutor(1) as other:  # a folder is then locked itself
        assert "another process" in str(other.submit(hold_here, tmp_path / "out").exception())


def test_a_device_is_not_locked():
    with locked(Path(os.devnull)), ThreadPoolExecutor(1) as other:
        assert other.submit(hold_here, Path(os.devnull)).exception() is None


def test_a_file_system_without_locks_is_a_warning(tmp_path, monkeypatch, caplog):
    def unable(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr("elmokit.base.locks._lock", unable)
    with locked(tmp_path / "out"):
        assert "is on a file system without locks" in caplog.text
