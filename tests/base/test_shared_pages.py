"""Weights of several processes are one copy in memory."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import elmokit
from elmokit.base import shared_copy, shared_pages
from elmokit.formats import save_model
from tests.tiny import tiny_bundle, tiny_config, tiny_model

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is shared on Linux only")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(shared_pages.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(shared_pages, "_files", {})
    return tmp_path


def test_a_copy_is_the_same_and_ones_own(folder):
    content = np.arange(100_000, dtype=np.uint8)
    first, second = shared_copy(content), shared_copy(content)
    first[0] = 9
    assert second[:] == content.tobytes()
    assert len(list(folder.glob("elmokit-shared-*/*.block"))) == 1


def test_unused_files_are_deleted_and_used_ones_stay(folder):
    kept, dropped = (np.full(5000, k, np.uint8) for k in (1, 2))
    shared_copy(kept), shared_copy(dropped)
    digests = list(shared_pages._files)
    shared_pages.os.close(shared_pages._files.pop(digests[1]))  # as if its process had ended
    names = (
        f"import numpy, tempfile; tempfile.tempdir = {str(folder)!r}; from elmokit.base import shared_copy; "
    )
    subprocess.run(
        [sys.executable, "-c", f"{names}shared_copy(numpy.full(5000, 3, numpy.uint8))"], check=True
    )
    assert {path.stem for path in folder.glob("*/*.block")} & set(digests) == {digests[0]}


def test_a_folder_of_others_is_not_used(folder, caplog):
    (folder / f"elmokit-shared-{shared_pages.os.getuid()}").mkdir(mode=0o777)
    (folder / f"elmokit-shared-{shared_pages.os.getuid()}").chmod(0o777)
    assert shared_copy(np.ones(5000, np.uint8)) is None
    assert "no folder of this user alone" in caplog.text


def test_a_model_with_shared_weights_gives_the_same_vectors(folder, tmp_path):
    config = tiny_config(cell_dim=256, projection_dim=64, filters=((1, 64), (2, 64)))
    save_model(tiny_bundle(tiny_model(config, scale=0.2)), tmp_path / "model")
    plain, sharing = elmokit.load(tmp_path / "model"), elmokit.load(tmp_path / "model")
    sharing.share_weights()
    texts = ["the river bank", "one"]
    for a, b in zip(plain.embed(texts), sharing.embed(texts), strict=True):
        assert np.array_equal(a.layers, b.layers)
    mapped = Path("/proc/self/maps").read_text("utf-8")
    assert str(folder) in mapped
