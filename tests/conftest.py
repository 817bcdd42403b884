"""What all tests share."""

import os
import signal
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

# With --import-mode=importlib nothing is put on the path, and test modules import `tests.tiny`.
sys.path.insert(0, str(Path(__file__).parent.parent))

torch.set_num_threads(1)  # tiny matrices gain nothing from threads, and pytest runs one worker per core

# A process that was started in the background may ignore Ctrl-C, and its children then do, too.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: how long an example takes says nothing about right or wrong. Derandomised: a run that failed
# elsewhere fails here too.
settings.register_profile(
    "elmokit",
    deadline=None,
    derandomize=True,
    max_examples=30,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("elmokit")


@pytest.fixture(scope="session")
def published() -> Path:
    """The folder with the published fixtures; tests that need it are skipped where it is not."""
    folder = os.environ.get("ELMOKIT_DATA")
    if not folder:
        pytest.skip(
            "set ELMOKIT_DATA to the folder that holds fixtures/ to compare with the published numbers"
        )
    return Path(folder) / "fixtures"
