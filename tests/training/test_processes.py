"""Several processes that train together."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import os
import torch
from pathlib import Path
from elmokit.training import Processes

with Processes.joined(torch.device("cpu")) as processes:
    torch.optim.AdamW([torch.nn.Parameter(torch.ones(2))])  # imports modules that know the group
    assert processes.mean([processes.rank]) == [0.5]
names = [name.read_text() for name in Path("/proc/self/task").glob("*/comm")]
left = sum("gloo" in name for name in names)
os.write(1, f"{left} threads left\\n".encode())  # whole, whatever the other process writes
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="only Linux lists threads")
def test_no_thread_of_the_group_outlives_it():
    """One that frees a tensor while the interpreter ends would abort the process."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    done = subprocess.run(
        [*launch, "--no-python", sys.executable, "-c", SCRIPT],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert sorted(done.stdout.splitlines()) == ["0 threads left", "0 threads left"], done.stderr
