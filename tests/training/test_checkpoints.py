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
    message = r"No space left on device; free some space; continue with resume=True"
    with pytest.raises(DataError, match=message):
        checkpoints.save(20, {"step": 20})
    monkeypatch.undo()
    assert checkpoints.load() == {"step": 10}
    assert names(tmp_path) == ["step-000000010.pt"]


GARBAGE = [b"", b"PK damaged", b"PK\x03\x04" + bytes(100), bytes(range(256))]


@pytest.mark.parametrize("content", GARBAGE)
def test_a_damaged_checkpoint_says_what_to_do(tmp_path, content):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "step-000000010.pt").write_bytes(content)
    with pytest.raises(DataError, match=r"no checkpoint in .*can be read \(step-000000010.pt\); delete"):
        Checkpoints(tmp_path).load()


def test_a_checkpoint_of_something_else(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    for content in (torch.zeros(3), [1, 2], "text"):
        torch.save(content, tmp_path / "checkpoints" / "step-000000010.pt")
        with pytest.raises(DataError, match=r"no checkpoint in .*can be read"):
            Checkpoints(tmp_path).load()


def test_one_wrong_bit_anywhere_is_noticed_and_the_one_before_used(tmp_path, caplog):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(10, {"step": 10, "weights": torch.zeros(1000)})
    checkpoints.save(20, {"step": 20, "weights": torch.ones(1000)})
    newest = tmp_path / "checkpoints" / "step-000000020.pt"
    whole = newest.read_bytes()
    places = [whole.index(torch.ones(1000).numpy().tobytes()) + 1234, whole.index(b"weights") + 2]
    for place in places:
        newest.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert checkpoints.load()["step"] == 10
        assert "step-000000020.pt is damaged and is skipped (the checksum of" in caplog.text
        caplog.clear()
    with pytest.raises(DataError, match="can be read"):
        checkpoints.load(20)
    checkpoints.save(15, {"step": 15})
    assert names(tmp_path) == ["step-000000010.pt", "step-000000015.pt"]  # the damaged one is gone


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"cannot write .*step-000000010.pt: "):
        Checkpoints(tmp_path / "file").save(10, {})
