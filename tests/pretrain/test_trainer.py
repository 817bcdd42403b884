"""The loop: exact resumption, rolling back, checkpoints that survive."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from elmokit.errors import ConfigError, DataError, TrainingError
from elmokit.pretrain import trainer as module
from elmokit.pretrain.bilm.recipe import Recipe
from elmokit.pretrain.bilm.trainer import Budget
from elmokit.training.checkpoints import Checkpoints
from elmokit.training.metrics import Metrics, read_metrics
from tests.training import RECIPE, make_trainer


def losses(folder):
    return [(record["step"], record["sampled_loss"]) for record in read_metrics(folder)]


@pytest.mark.parametrize("order", ["document", "sentence"])
def test_a_run_that_was_stopped_goes_on_to_the_same_losses(corpus, tmp_path, order):
    recipe = Recipe(**{**RECIPE.__dict__, "order": order})
    whole = make_trainer(corpus, tmp_path / "whole", recipe)
    assert whole.run(lambda _: None)
    stops = make_trainer(corpus, tmp_path / "parts", recipe)
    seen = []
    assert not stops.run(seen.append, stopped=lambda: len(seen) == 17)  # in the middle of a record
    again = make_trainer(corpus, tmp_path / "parts", recipe)
    assert again.run(lambda _: None)
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    for a, b in zip(whole.model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_run_that_was_killed_goes_on_to_the_same_losses(corpus, tmp_path):
    make_trainer(corpus, tmp_path / "whole").run(lambda _: None)
    script = f"""
        import os, signal, sys
        from pathlib import Path
        sys.path[:0] = [{str(Path(__file__).parents[2])!r}]
        from elmokit.corpus import PreparedCorpus
        from elmokit.pretrain import trainer
        from tests.training import make_trainer
        trainer._CHECKPOINT_SECONDS = 0
        def report(status):
            if status.position.step == 27:
                os.kill(os.getpid(), signal.SIGKILL)
        make_trainer(PreparedCorpus({str(corpus.path)!r}), Path({str(tmp_path / "killed")!r})).run(report)
    """
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False, env={**os.environ})
    assert killed.returncode == -signal.SIGKILL
    assert [step for step, _ in losses(tmp_path / "killed")] == [10, 20]
    assert make_trainer(corpus, tmp_path / "killed").run(lambda _: None)
    assert losses(tmp_path / "killed") == losses(tmp_path / "whole")


def test_a_loss_that_is_not_a_number_rolls_back_with_a_smaller_step(corpus, tmp_path, monkeypatch):
    said = []
    trainer = make_trainer(corpus, tmp_path, say=said.append)
    step, broken = trainer._network.step, []

    def breaks_once(window, state, number):
        result = step(window, state, number)
        if number == 13 and not broken:
            broken.append(number)
            return result._replace(forward=float("nan"))
        return result

    monkeypatch.setattr(trainer._network, "step", breaks_once)
    assert trainer.run(lambda _: None)
    assert "the loss exploded at step 13: back to the checkpoint of step 0, learning rate × 0.5" in said
    assert trainer.position.rate_factor == 0.5
    assert trainer.position.step == 40
    assert [record["step"] for record in read_metrics(tmp_path)] == [10, 20, 30, 40]


def test_training_that_keeps_exploding_ends_with_advice(corpus, tmp_path, monkeypatch):
    trainer = make_trainer(corpus, tmp_path)
    step = trainer._network.step
    monkeypatch.setattr(trainer._network, "step", lambda *a: step(*a)._replace(forward=float("inf")))
    with pytest.raises(TrainingError, match=r"exploded again at step 0, after 6 returns.*a smaller"):
        trainer.run(lambda _: None)


def test_other_settings_or_another_corpus_are_refused(corpus, tmp_path):
    make_trainer(corpus, tmp_path).run(lambda _: None)
    other = Recipe(**{**RECIPE.__dict__, "dropout": 0.3})
    with pytest.raises(ConfigError, match=r"begun otherwise: dropout is 0.3, was 0.1"):
        make_trainer(corpus, tmp_path, other).run(lambda _: None)


def test_held_out_perplexity_is_measured_on_the_way(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_EVALUATION_SHARE", float("inf"))
    said = []
    make_trainer(corpus, tmp_path, say=said.append).run(lambda _: None)
    found = [record["heldout"]["mean"] for record in read_metrics(tmp_path) if "heldout" in record]
    assert len(found) == 4  # one at every record of this short run
    assert found[-1] < found[0]
    assert "held-out perplexity" in said[0]


def test_the_last_checkpoints_are_kept(tmp_path):
    checkpoints = Checkpoints(tmp_path, keep=2)
    assert checkpoints.load() is None
    for step in (10, 20, 30):
        checkpoints.save(step, {"step": step})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-000000020.pt", "step-000000030.pt"]
    assert checkpoints.load() == {"step": 30}


def test_a_full_disk_leaves_the_checkpoint_before(tmp_path, monkeypatch):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(10, {"step": 10})

    def full(content, file):
        file.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(DataError, match=r"No space left on device.*--resume: the one before it is whole"):
        checkpoints.save(20, {"step": 20})
    monkeypatch.undo()
    assert checkpoints.load() == {"step": 10}
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000010.pt"]


def test_a_damaged_checkpoint_says_what_to_do(tmp_path):
    (tmp_path / "step-000000010.pt").write_bytes(b"PK damaged")
    with pytest.raises(DataError, match=r"step-000000010.pt is damaged.*remove it"):
        Checkpoints(tmp_path).load()


def test_what_a_killed_run_was_writing_is_removed(tmp_path):
    (tmp_path / "step-000000005.part").write_bytes(b"half")
    Checkpoints(tmp_path).save(10, {"a": 1})
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000010.pt"]


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"cannot be written \(.*there is none before it"):
        Checkpoints(tmp_path / "file" / "checkpoints").save(10, {})


def test_a_full_disk_is_told_of_by_the_metrics(tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    with closing(Metrics(tmp_path, 0)) as metrics, monkeypatch.context() as disk:
        disk.setattr(metrics, "_file", SimpleNamespace(write=full))
        with pytest.raises(DataError, match=r"No space left on device.*go on with --resume"):
            metrics.write({"step": 10})


def test_metrics_after_the_checkpoint_are_forgotten(tmp_path):
    lines = [json.dumps({"step": step, "loss": 1.0}) for step in (10, 20, 30)]
    (tmp_path / "metrics.jsonl").write_text("\n".join([*lines, '{"step": 4']), encoding="utf-8")
    metrics = Metrics(tmp_path, 20)
    metrics.write({"step": 30, "loss": 2.0})
    metrics.close()
    assert [record["loss"] for record in read_metrics(tmp_path)] == [1.0, 1.0, 2.0]


@pytest.mark.parametrize("given", [{}, {"minutes": 1, "tokens": 5}, {"epochs": 0}, {"tokens": -1}])
def test_exactly_one_budget(given):
    with pytest.raises(ConfigError, match="give one positive budget"):
        Budget(**given)


def test_progress():
    assert Budget(minutes=2).progress(60, 0, 10) == 0.5
    assert Budget(tokens=100).progress(0, 25, 10) == 0.25
    assert Budget(epochs=2).progress(0, 15, 10) == 0.75
    assert Budget(epochs=2).part(0.25).epochs == 0.5
