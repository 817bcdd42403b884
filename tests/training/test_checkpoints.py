"""Checkpoints that survive a full disk and a killed process."""

import pytest
import torch

from elmokit.errors import DataError
from elmokit.training import Checkpoints


def names(run):
    return sorted(path.name for path in (run / "checkpoints").iterdir())


def test_the_last_checkpoints_and_the_best_are_kept(tmp_path):
    checkpoints = Checkpoints(tmp_path, keep=2)
    assert checkpoints.load() is None
    for step in (10, 20, 30, 40):
        checkpoints.save(step, {"step": step}, best=10)
    assert names(tmp_path) == ["step-000000010.pt", "step-000000030.pt", "step-000000040.pt"]
    assert checkpoints.load() == {"step": 40}
    assert checkpoints.load(10) == {"step": 10}


def test_a_full_disk_leaves_the_checkpoint_before(tmp_path, monkeypatch):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(10, {"step": 10})

    def full(content, path):
        path.write_bytes(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    message = r"No space left on device.*resume=True: the one before it is whole"
    with pytest.raises(DataError, match=message):
        checkpoints.save(20, {"step": 20})
    monkeypatch.undo()
    assert checkpoints.load() == {"step": 10}
    assert names(tmp_path) == ["step-000000010.pt"]


def test_a_damaged_checkpoint_says_what_to_do(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "step-000000010.pt").write_bytes(b"PK damaged")
    with pytest.raises(DataError, match=r"step-000000010.pt is damaged.*remove it"):
        Checkpoints(tmp_path).load()


def test_what_a_killed_run_was_writing_is_removed(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / ".step-000000005.pt.0123abcd.draft").write_bytes(b"half")
    Checkpoints(tmp_path).save(10, {"a": 1})
    assert names(tmp_path) == ["step-000000010.pt"]


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"cannot be written \(.*there is none before it"):
        Checkpoints(tmp_path / "file").save(10, {})
