"""Pretraining in the loop: exact resumption, rolling back, evaluation on the way."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

from elmokit.errors import ConfigError, TrainingError
from elmokit.pretraining.bilm import bilm_job as module
from elmokit.pretraining.bilm.recipe import Recipe
from elmokit.training import read_metrics
from tests.small_runs import RECIPE, make_loop


def losses(folder):
    return [(record["step"], record["sampled_loss"]) for record in read_metrics(folder)]


@pytest.mark.parametrize("order", ["document", "sentence"])
def test_a_run_that_was_stopped_goes_on_to_the_same_losses(corpus, tmp_path, order):
    recipe = Recipe(**{**RECIPE.__dict__, "order": order})
    whole = make_loop(corpus, tmp_path / "whole", recipe)
    assert whole.run(lambda _: None)
    stops = make_loop(corpus, tmp_path / "parts", recipe)
    seen = []
    assert not stops.run(seen.append, stopped=lambda: len(seen) == 16)  # in the middle of a record
    again = make_loop(corpus, tmp_path / "parts", recipe)
    assert again.run(lambda _: None)
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    for a, b in zip(whole.job.model.parameters(), again.job.model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_losses_with_and_without_the_native_kernel_are_alike(corpus, tmp_path, monkeypatch):
    monkeypatch.delenv("ELMOKIT_KERNEL", raising=False)
    make_loop(corpus, tmp_path / "native").run(lambda _: None)
    monkeypatch.setenv("ELMOKIT_KERNEL", "torch")
    make_loop(corpus, tmp_path / "torch").run(lambda _: None)
    for (step, found), (_, wanted) in zip(
        losses(tmp_path / "native"), losses(tmp_path / "torch"), strict=True
    ):
        assert found == pytest.approx(wanted, abs=0.01 if step < 30 else 0.05)


def test_a_run_that_was_killed_goes_on_to_the_same_losses(corpus, tmp_path):
    make_loop(corpus, tmp_path / "whole").run(lambda _: None)
    script = f"""
        import os, signal, sys
        from pathlib import Path
        sys.path[:0] = [{str(Path(__file__).parents[2])!r}]
        from elmokit.corpus import PreparedCorpus
        from elmokit.training import loop
        from tests.small_runs import make_loop
        loop._CHECKPOINT_SECONDS = 0
        def report(status):
            if status.position.step == 27:
                os.kill(os.getpid(), signal.SIGKILL)
        make_loop(PreparedCorpus({str(corpus.path)!r}), Path({str(tmp_path / "killed")!r})).run(report)
    """
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False, env={**os.environ})
    assert killed.returncode == -signal.SIGKILL
    assert [step for step, _ in losses(tmp_path / "killed")] == [10, 20]
    assert make_loop(corpus, tmp_path / "killed").run(lambda _: None)
    assert losses(tmp_path / "killed") == losses(tmp_path / "whole")


def test_a_loss_that_is_not_a_number_rolls_back_with_a_smaller_step(corpus, tmp_path, monkeypatch):
    said = []
    loop = make_loop(corpus, tmp_path, say=said.append)
    step, broken = loop.job._network.step, []

    def breaks_once(window, state, number):
        result = step(window, state, number)
        if number == 13 and not broken:
            broken.append(number)
            return result._replace(forward=float("nan"))
        return result

    monkeypatch.setattr(loop.job._network, "step", breaks_once)
    assert loop.run(lambda _: None)
    assert "the loss exploded at step 13: back to the checkpoint of step 0, learning rate × 0.5" in said
    assert loop.position.rate_factor == 0.5
    assert loop.position.step == 40
    assert [record["step"] for record in read_metrics(tmp_path)] == [10, 20, 30, 40]


def test_training_that_keeps_exploding_ends_with_advice(corpus, tmp_path, monkeypatch):
    loop = make_loop(corpus, tmp_path)
    step = loop.job._network.step
    monkeypatch.setattr(loop.job._network, "step", lambda *a: step(*a)._replace(forward=float("inf")))
    with pytest.raises(TrainingError, match=r"exploded again at step 0, after 6 returns.*a smaller"):
        loop.run(lambda _: None)


def test_other_settings_or_another_corpus_are_refused(corpus, tmp_path):
    make_loop(corpus, tmp_path).run(lambda _: None)
    other = Recipe(**{**RECIPE.__dict__, "dropout": 0.3})
    with pytest.raises(ConfigError, match=r"other settings: dropout is 0.3, was 0.1"):
        make_loop(corpus, tmp_path, other).run(lambda _: None)


def test_held_out_perplexity_is_measured_on_the_way(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_EVALUATION_SHARE", float("inf"))
    said = []
    make_loop(corpus, tmp_path, say=said.append).run(lambda _: None)
    found = [record["heldout"]["mean"] for record in read_metrics(tmp_path) if "heldout" in record]
    assert len(found) == 4  # one at every record of this short run
    assert found[-1] < found[0]
    assert "perplexity of the held-out text" in said[0]
