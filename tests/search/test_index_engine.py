"""An index records which engine made its vectors, and another one does not go on with it unnoticed."""

import pytest

from elmokit import ConfigError, Index
from elmokit.embed import Embedder
from elmokit.text import TokenizerSpec
from tests.tiny import tiny_bundle


def test_another_engine_goes_on_only_if_told(tmp_path, monkeypatch):
    embedder = Embedder(tiny_bundle(), tokenizer=TokenizerSpec(name="rules", language="en"))
    index = Index.build(["The bank closed."], tmp_path / "index", model=embedder)
    engine = embedder.engine
    assert (index.settings["engine"], index.settings["precision"]) == (engine, embedder.precision)
    monkeypatch.setattr(Embedder, "engine", "other")
    with pytest.raises(ConfigError, match=f"built by the engine {engine}, this is other.*KERNEL={engine}"):
        Index.build(["A river."], tmp_path / "index", model=embedder)
    opened = Index.open(tmp_path / "index", model=embedder)
    opened.add(["A river."])
    assert len(opened) == 1  # texts are named by their position: the first is replaced
