"""The vectors of an index and of `encode` in other stores, as docs/guides/search.md shows them."""

import numpy as np
import pytest

from elmokit import Index, embed_file
from elmokit.embed import Embedder
from elmokit.text import TokenizerSpec
from tests.tiny import tiny_bundle

TEXTS = ["The cat sat on the mat.", "The bank raised its rates.", "A dog ran along the river."]


@pytest.fixture(scope="module")
def embedder():
    return Embedder(tiny_bundle(), tokenizer=TokenizerSpec(name="rules", language="en"))


@pytest.fixture(scope="module")
def stored(embedder):
    """The names and vectors of an index."""
    with Index.build(TEXTS, model=embedder, language="en") as index:
        return index.vectors()


def test_faiss(stored):
    faiss = pytest.importorskip("faiss")
    names, vectors = stored
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    _, found = index.search(vectors, 1)
    assert [names[row] for row in found[:, 0]] == names
    assert np.array_equal(index.reconstruct_n(0, len(names)), vectors)


def test_usearch(stored, tmp_path):
    usearch = pytest.importorskip("usearch.index")
    names, vectors = stored
    index = usearch.Index(ndim=vectors.shape[1], metric="cos", dtype="f32")
    index.add(np.arange(len(names)), vectors)
    index.save(str(tmp_path / "vectors.usearch"))
    opened = usearch.Index.restore(str(tmp_path / "vectors.usearch"))
    assert [names[int(opened.search(vector, 1).keys[0])] for vector in vectors] == names
    assert np.array_equal(np.stack([opened.get(row) for row in range(len(names))]), vectors)


def test_lancedb(stored, tmp_path):
    lancedb = pytest.importorskip("lancedb")
    names, vectors = stored
    rows = [{"id": name, "vector": vector} for name, vector in zip(names, vectors, strict=True)]
    table = lancedb.connect(tmp_path / "db").create_table("passages", rows)
    assert [table.search(vector).limit(1).to_list()[0]["id"] for vector in vectors] == names


def test_parquet(embedder, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    embed_file(embedder, tmp_path / "texts.txt", tmp_path / "texts.parquet", pooling="mean", dtype="float32")
    rows = parquet.read_table(tmp_path / "texts.parquet").to_pylist()
    column = next(name for name, value in rows[0].items() if name.startswith("vector"))
    found = np.array([row[column] for row in rows], np.float32)
    assert np.allclose(found, embedder.encode(TEXTS, pooling="mean"), atol=1e-6)
