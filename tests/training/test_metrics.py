"""The records of a run."""

import json
from contextlib import closing
from types import SimpleNamespace

import pytest

from elmokit.errors import DataError
from elmokit.training import read_metrics
from elmokit.training.metrics import Metrics


def test_a_full_disk_is_reported(tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    with closing(Metrics(tmp_path, 0)) as metrics, monkeypatch.context() as disk:
        disk.setattr(metrics, "_file", SimpleNamespace(write=full))
        with pytest.raises(DataError, match=r"No space left on device.*continue with resume=True"):
            metrics.write({"step": 10})


def test_records_after_the_checkpoint_are_deleted(tmp_path):
    lines = [json.dumps({"step": step, "loss": 1.0}) for step in (10, 20, 30)]
    (tmp_path / "metrics.jsonl").write_text("\n".join([*lines, '{"step": 4']), encoding="utf-8")
    metrics = Metrics(tmp_path, 20)
    metrics.write({"step": 30, "loss": 2.0})
    metrics.close()
    assert [record["loss"] for record in read_metrics(tmp_path)] == [1.0, 1.0, 2.0]
