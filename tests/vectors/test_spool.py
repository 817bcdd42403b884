import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from elmokit.errors import ConfigError, DataError
from elmokit.vectors import Layout, Row, Spool, spool, writers

LAYOUT = Layout(shape=(2, -1, 3), dtype="float32")
SETTINGS = {"layers": "all"}


def row(number):
    tokens = ["word"] * (number % 4)
    vectors = np.random.default_rng(number).normal(size=(2, len(tokens), 3)).astype(np.float32)
    return Row(text=f"sentence {number}", tokens=tokens, offsets=[(0, 4)] * len(tokens), vectors=vectors)


def same(one, other):
    return (one.text, one.tokens, one.offsets) == (
        other.text,
        other.tokens,
        other.offsets,
    ) and np.array_equal(one.vectors, other.vectors)


def leave_interrupted(target, numbers=range(5), layout=LAYOUT):
    """Leave a spool as a kill does, each row a finished part."""
    with Spool(target, layout, SETTINGS) as made:
        for number in numbers:
            made.add(row(number))
            made._finish_part()
    return made.folder


def reference(folder):
    target = folder / "whole.h5"
    with Spool(target, LAYOUT, SETTINGS) as whole:
        for number in range(9):
            whole.add(row(number))
        whole.pack()
    return target.read_bytes()


def resume(target):
    with Spool(target, LAYOUT, SETTINGS, resume=True) as resumed:
        for number in range(resumed.num_rows, 9):
            resumed.add(row(number))
        resumed.pack()
    return target.read_bytes()


def test_rows_come_back_and_the_spool_goes(tmp_path):
    target = tmp_path / "v.npz"
    with Spool(target, LAYOUT, SETTINGS) as made:
        for number in range(5):
            made.add(row(number))
        made._finish_part()
        assert all(same(got, row(number)) for number, got in enumerate(made.rows()))
        made.pack()
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("limit", ["PART_BYTES", "PART_SECONDS"])
def test_a_part_ends_by_size_or_by_time(tmp_path, monkeypatch, limit):
    monkeypatch.setattr(spool, limit, 0)
    with Spool(tmp_path / "v.h5", LAYOUT, SETTINGS) as made:
        made.add(row(0))
        made.add(row(1))
        assert sorted(path.name for path in made.folder.iterdir()) == [
            "000000.jsonl",
            "000000.vectors",
            "000001.jsonl",
            "000001.vectors",
            "job.json",
        ]


def test_resume_gives_the_same_bytes(tmp_path):
    target = tmp_path / "v.h5"
    leave_interrupted(target)
    assert resume(target) == reference(tmp_path)


def test_resume_after_a_kill_in_the_open_part_or_between_its_two_renames(tmp_path):
    target = tmp_path / "v.h5"
    folder = leave_interrupted(target)
    (folder / "open.jsonl").write_bytes(b'{"text": "half a li')
    (folder / "000005.vectors").write_bytes(b"no index yet")
    assert resume(target) == reference(tmp_path)


def test_resume_after_a_kill_while_packing(tmp_path, monkeypatch):
    target = tmp_path / "v.h5"
    folder = leave_interrupted(target, range(9))
    (folder / "open.packed").write_bytes(b"half a file")
    assert resume(target) == reference(tmp_path)


def test_an_error_keeps_the_rows_so_far(tmp_path):
    target = tmp_path / "v.h5"
    made = Spool(target, LAYOUT, SETTINGS)
    made.add(row(0))
    made.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert resume(target) == reference(tmp_path)


def test_an_error_before_the_first_row_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt), Spool(tmp_path / "v.h5", LAYOUT, SETTINGS):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_existing_target_is_refused_and_overwritten_only_at_the_end(tmp_path):
    target = tmp_path / "v.h5"
    target.write_text("precious")
    with pytest.raises(DataError, match=r"v\.h5 exists already; choose another name, or overwrite=True"):
        Spool(target, LAYOUT, SETTINGS)
    with Spool(target, LAYOUT, SETTINGS, overwrite=True) as made:
        made.add(row(0))
        assert target.read_text() == "precious"
        made.pack()
    assert target.read_bytes() != b"precious"


def test_existing_spool_names_both_ways_out(tmp_path):
    target = tmp_path / "v.h5"
    leave_interrupted(target)
    with pytest.raises(DataError, match=r"interrupted run.*resume=True.*overwrite=True"):
        Spool(target, LAYOUT, SETTINGS)
    assert Spool(target, LAYOUT, SETTINGS, overwrite=True).num_rows == 0


def test_resume_and_overwrite_exclude_each_other(tmp_path):
    with pytest.raises(ConfigError, match="choose one of the two"):
        Spool(tmp_path / "v.h5", LAYOUT, SETTINGS, resume=True, overwrite=True)


def test_other_settings_are_named(tmp_path):
    target = tmp_path / "v.h5"
    leave_interrupted(target)
    other = Layout(shape=(2, -1, 3), dtype="float16")
    with pytest.raises(DataError, match=r"dtype is float16, was float32\. Use the same settings"):
        Spool(target, other, SETTINGS, resume=True)


def test_a_lost_part_is_noticed(tmp_path):
    target = tmp_path / "v.h5"
    (leave_interrupted(target) / "000002.jsonl").unlink()
    with pytest.raises(DataError, match="lost some of its parts"):
        Spool(target, LAYOUT, SETTINGS, resume=True)


def test_a_shortened_part_is_noticed(tmp_path):
    target = tmp_path / "v.h5"
    os.truncate(leave_interrupted(target) / "000003.vectors", 5)
    with pytest.raises(DataError, match=r"000003\.vectors is shorter than its index says"):
        resume(target)


@pytest.mark.parametrize("name", ["job.json", "000000.jsonl"])
@pytest.mark.parametrize("content", [b'{"text": ', b"5", b"\xff\xfe"])
def test_a_damaged_index_is_noticed(tmp_path, name, content):
    target = tmp_path / "v.h5"
    (leave_interrupted(target) / name).write_bytes(content)
    with pytest.raises(DataError, match=r"is not (a )?JSON.* start again with overwrite=True"):
        Spool(target, LAYOUT, SETTINGS, resume=True)


def test_a_file_where_the_folder_should_be(tmp_path):
    (tmp_path / "v.npz.part").write_text("half a download")
    for way in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(DataError, match=r"v\.npz\.part is in the way and is not a folder"):
            Spool(tmp_path / "v.npz", LAYOUT, SETTINGS, **way)


def test_a_folder_of_someone_else_is_left_alone(tmp_path):
    folder = tmp_path / "v.h5.part"
    folder.mkdir()
    (folder / "novel.txt").write_text("precious")
    with pytest.raises(DataError, match=r"cannot write .*v\.h5: Directory not empty"):
        Spool(tmp_path / "v.h5", LAYOUT, SETTINGS, overwrite=True)
    assert (folder / "novel.txt").read_text() == "precious"


def test_target_that_is_a_folder_or_in_none(tmp_path):
    (tmp_path / "v.h5").mkdir()
    with pytest.raises(DataError, match="is a folder; name a file in it"):
        Spool(tmp_path / "v.h5", LAYOUT, SETTINGS)
    with pytest.raises(DataError, match=r"the folder .*none does not exist; make it first"):
        Spool(tmp_path / "none" / "v.h5", LAYOUT, SETTINGS)


def test_unwritable_folder(tmp_path, monkeypatch):
    def refuse(path, **_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)  # root may write anywhere, so a mode would not do
    with pytest.raises(DataError, match="Permission denied; nothing is kept yet: start again"):
        Spool(tmp_path / "v.h5", LAYOUT, SETTINGS)


def test_float16_overflow_is_an_error(tmp_path):
    layout = Layout(shape=(2, -1, 3), dtype="float16")
    big = row(1)
    big.vectors[0, 0, 0] = 70_000
    with Spool(tmp_path / "v.h5", layout, SETTINGS) as made:
        made.add(row(0))
        with pytest.raises(DataError, match=r"line 2 \('sentence 1'\) has a number of size 70000.*float32"):
            made.add(big)
        assert made.num_rows == 1


_FULL_DISK = """
import resource, signal, sys
from pathlib import Path
import numpy as np
from elmokit.errors import DataError
from elmokit.vectors import Layout, Row, Spool, spool
spool.PART_BYTES = 40_000
random = np.random.default_rng(0)
row = {"text": "a b", "tokens": ["a", "b"], "offsets": [(0, 1), (2, 3)]}
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
try:
    with Spool(Path(sys.argv[1]), Layout(shape=(2, -1, 1000), dtype="float32"), {}, resume=True) as made:
        while made.num_rows < 12:
            made.add(Row(**row, vectors=random.normal(size=(2, 2, 1000))))
        made.pack()
except DataError as error:
    print(error)
    sys.exit(1)
"""


@pytest.mark.parametrize("ending", writers.ENDINGS[:-1])
def test_full_disk_while_packing_keeps_the_spool(tmp_path, ending):
    # A limit on the size of a file stands for the full disk: the parts stay below it, the target does not.
    target = tmp_path / f"v{ending}"
    done = subprocess.run(
        [sys.executable, "-c", _FULL_DISK, target], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert f"cannot write {target}: " in done.stdout
    assert "free some space" in done.stdout
    assert "resume=True" in done.stdout
    assert not target.exists()
    kept = Spool(target, Layout(shape=(2, -1, 1000), dtype="float32"), {}, resume=True)
    assert kept.num_rows == 12
    kept.pack()
    assert target.stat().st_size > 100_000


def test_full_disk_while_spooling_keeps_the_finished_parts(tmp_path, monkeypatch):
    target = tmp_path / "v.h5"

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    with Spool(target, LAYOUT, SETTINGS) as made:
        made.add(row(0))
        made._finish_part()
        monkeypatch.setattr(os, "fsync", full)
        monkeypatch.setattr(spool, "PART_BYTES", 0)
        with pytest.raises(DataError, match=r"No space left on device; free some space.*resume=True"):
            made.add(row(1))
    monkeypatch.undo()
    assert Spool(target, LAYOUT, SETTINGS, resume=True).num_rows == 1
    assert resume(target) == reference(tmp_path)
