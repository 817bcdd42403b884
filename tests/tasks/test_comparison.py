"""Comparisons that were interrupted."""

import pytest

from elmokit.tasks import find_task
from elmokit.tasks.core import comparison
from elmokit.tasks.core.task_job import TaskJob
from tests.task_data import quick_settings


def test_an_interrupted_run_goes_on_from_its_last_checkpoint(folders, tmp_path, monkeypatch):
    arguments = {
        "task": find_task("tagger"),
        "source": folders["tagger"],
        "encoder": "chars",
        "settings": quick_settings("tagger", "training.epochs=3"),
    }
    steps = []
    compute = TaskJob.compute

    def counted(job, step):
        if step in fatal:
            raise RuntimeError("as if killed")
        steps.append(step)
        return compute(job, step)

    monkeypatch.setattr(TaskJob, "compute", counted)
    fatal = ()
    whole = comparison._measure(tmp_path / "whole", arguments)
    every, fatal = list(steps), (steps[-1],)
    steps.clear()
    with pytest.raises(RuntimeError, match="as if killed"):
        comparison._measure(tmp_path / "run", arguments)
    steps.clear()
    fatal = ()
    measured = comparison._measure(tmp_path / "run", arguments)
    assert 0 < len(steps) < len(every)
    assert measured["run"]["values"] == whole["run"]["values"]
    assert measured["run"]["seconds"] >= 0
