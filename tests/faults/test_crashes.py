"""A sample of the crash matrix; `make fuzz` tries as many points as fit into its time."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.injection import compile_library, preloaded

POINTS = 50


def test_a_fault_at_any_writing_call_loses_nothing(tmp_path):
    library = compile_library(tmp_path)
    if library is None:
        pytest.skip("needs Linux and a C compiler, to inject faults into system calls")
    command = [sys.executable, "-m", "tests.faults.crashes", "--points", str(POINTS)]
    root = Path(__file__).parents[2]
    paths = {"PYTHONPATH": os.pathsep.join([str(root), str(root / "src")])}
    environment = preloaded(library) | paths
    done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"^{POINTS} of [\d,]+ points, 0 losses", done.stdout, re.MULTILINE)
    assert re.search(r"^\d+ operations done by two processes at a time", done.stdout, re.MULTILINE)
