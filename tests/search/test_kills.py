"""An index survives kill -9 at any moment."""

import os
import subprocess
import sys
from pathlib import Path


def test_twenty_kills(tmp_path):
    """While indexing, appending, replacing, deleting and merging: nothing is lost, nothing is there twice."""
    command = [sys.executable, "-m", "tests.search.killed_writer", tmp_path, "20"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    root = Path(__file__).parents[2]
    found = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr[-2000:]
