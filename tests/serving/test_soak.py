"""A short run of `soak.py`; `make test-all` does ten thousand requests."""

from tests.serving.soak import soak


def test_disconnects_large_bodies_and_slow_clients():
    counts = soak(320)
    assert counts["checked"] == counts["whole"] + counts["slow"]
