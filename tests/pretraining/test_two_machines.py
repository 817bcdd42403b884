"""Pretraining under torchrun on two addresses: one process is killed, and the run goes on where it was.

Two network namespaces stand for two machines, which needs Linux and the rights of root.
"""

import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.small_runs import RECIPE_TEXT, prepare, sentences

psutil = pytest.importorskip("psutil")
pytestmark = pytest.mark.skipif(
    "ELMOKIT_CLUSTER" not in os.environ, reason="takes a minute or more: make test-cluster runs it"
)
_PORT, _PATIENCE = 29533, 600


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=True)


@pytest.fixture(scope="module")
def machines():
    """The names of two namespaces that see each other."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("network namespaces need Linux, the command ip, and root")
    names = [f"elmokit{os.getpid()}{letter}" for letter in "ab"]
    try:
        for name in names:
            ip("netns", "add", name)
        ip("link", "add", names[0][-14:], "type", "veth", "peer", "name", names[1][-14:])
        for number, name in enumerate(names, start=1):
            ip("link", "set", name[-14:], "netns", name)
            ip("-n", name, "addr", "add", f"10.213.77.{number}/24", "dev", name[-14:])
            ip("-n", name, "link", "set", name[-14:], "up")
            ip("-n", name, "link", "set", "lo", "up")
    except subprocess.CalledProcessError as error:
        remove(names)
        pytest.skip(f"network namespaces cannot be made here: {error.stderr.strip()}")
    yield names
    remove(names)


def remove(names):
    for name in names:
        with suppress(subprocess.CalledProcessError):
            ip("netns", "del", name)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two-machines")
    made = prepare(folder, sentences(400), heldout=sentences(20, seed=1))
    (folder / "recipe.toml").write_text(RECIPE_TEXT, "utf-8")
    return Path(made.folder) if hasattr(made, "folder") else folder / "corpus"


def start(machines, corpus, out, *extra):
    """Start torchrun on both machines, with one process each."""
    started = []
    for rank, name in enumerate(machines):
        command = ["ip", "netns", "exec", name, sys.executable, "-m", "torch.distributed.run"]
        command += ["--nnodes", "2", "--nproc-per-node", "1", "--node-rank", str(rank)]
        command += ["--master-addr", "10.213.77.1", "--master-port", str(_PORT)]
        command += ["-m", "elmokit.cli", "pretrain", *(extra or [str(corpus)]), "-o", str(out), "--quiet"]
        command += [] if extra else ["--recipe", str(corpus.parent / "recipe.toml"), "--train-tokens", "2000"]
        environment = os.environ | {"GLOO_SOCKET_IFNAME": name[-14:], "OMP_NUM_THREADS": "1"}
        started.append(
            subprocess.Popen(
                command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
            )
        )
    return started


def ends(started):
    return [(one.communicate(timeout=_PATIENCE)[1], one.returncode) for one in started]


def worker_of(torchrun):
    """The training process that a torchrun has started."""
    found = psutil.Process(torchrun.pid).children(recursive=True)
    (worker,) = (
        one
        for one in found
        if "elmokit.cli" in one.cmdline() and "torch.distributed.run" not in one.cmdline()
    )
    return worker


def steps(out):
    metrics = out / "training" / "metrics.jsonl"
    return len(metrics.read_text("utf-8").splitlines()) if metrics.exists() else 0


def test_a_process_is_killed_and_the_run_resumed(machines, corpus, tmp_path):
    whole = ends(start(machines, corpus, tmp_path / "whole"))
    assert [code for _, code in whole] == [0, 0], whole[0][0][-2000:]

    begun = start(machines, corpus, tmp_path / "killed")
    deadline = time.monotonic() + _PATIENCE
    while steps(tmp_path / "killed") < 1 and time.monotonic() < deadline:
        time.sleep(0.005)
    worker_of(begun[1]).kill()
    killed = ends(begun)
    assert all(code != 0 for _, code in killed), "the other machine must not wait for ever"
    assert not (tmp_path / "killed" / "config.json").exists()

    resumed = ends(start(machines, corpus, tmp_path / "killed", "--resume"))
    assert [code for _, code in resumed] == [0, 0], resumed[0][0][-2000:]
    files = [load_file(next((tmp_path / name).glob("*.safetensors"))) for name in ("whole", "killed")]
    assert files[0].keys() == files[1].keys()
    for name, weights in files[0].items():
        np.testing.assert_allclose(weights, files[1][name], atol=1e-6, err_msg=name)
