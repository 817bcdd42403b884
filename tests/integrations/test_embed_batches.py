"""What a cluster calls on each batch, without a cluster."""

import json
import pickle

import numpy as np
import pytest

import elmokit
from elmokit.errors import ConfigError, DataError
from elmokit.formats import save_model
from elmokit.integrations.cluster_input import read_records, read_shards
from elmokit.integrations.embed_batches import EmbedBatches
from elmokit.text import TextColumn
from elmokit.vectors import ShardFolder, write_shard
from tests.tiny import wide_bundle

pa = pytest.importorskip("pyarrow", reason="pip install 'elmokit[arrow]' to test batches")
pd = pytest.importorskip("pandas")

TEXTS = ["the river bank", "", "one", "a bank of the river"]
BAD = ["fine", None, 7, "lone \ud800", "x" * 200, ["a", "list"], ["a", 1]]


@pytest.fixture
def model(tmp_path):
    save_model(wide_bundle(), tmp_path / "tiny")
    return str(tmp_path / "tiny")


def vectors_of(table, name="vectors"):
    return [None if cell is None else np.array(cell, np.float32) for cell in table[name].to_pylist()]


@pytest.mark.parametrize("kind", ["table", "record batch", "frame", "numpy"])
def test_every_kind_of_batch(model, kind):
    made = {
        "table": lambda: pa.table({"id": range(4), "text": TEXTS}),
        "record batch": lambda: pa.record_batch({"id": range(4), "text": TEXTS}),
        "frame": lambda: pd.DataFrame({"id": range(4), "text": TEXTS}, index=[3, 5, 7, 9]),
        "numpy": lambda: {"id": np.arange(4), "text": np.array(TEXTS, object)},
    }[kind]()
    embed = pickle.loads(pickle.dumps(EmbedBatches(model, layers="top")))
    found = embed(made)
    if kind == "frame":
        assert list(found.index) == [3, 5, 7, 9]
        found = pa.Table.from_pandas(found, preserve_index=False)
    assert found.column_names == ["id", "text", "tokens", "offsets", "vectors"]
    for ours, sentence in zip(vectors_of(found), elmokit.load(model).stream(TEXTS), strict=True):
        assert np.array_equal(ours.reshape(-1, 64), sentence.layers[-1])


def test_layers_and_sentence_vectors(model):
    batch = pa.table({"text": TEXTS})
    assert EmbedBatches(model, layers=[0, 2])(batch).column_names[-2:] == ["layer_0", "layer_2"]
    pooled = EmbedBatches(model, pooling="max", layers="mix")(batch)
    expected = elmokit.load(model).encode(TEXTS, pooling="max")
    assert np.array_equal(np.stack(vectors_of(pooled, "vector")), expected)
    assert EmbedBatches(model, pooling="mean").empty().column_names == ["tokens", "offsets", "vector"]


def test_bad_rows_are_named_or_null(model):
    batch = {"text": np.array([*BAD, "good"], object)}
    with pytest.raises(DataError, match=r"row 2 has null; correct it, or .*on_error='null'"):
        EmbedBatches(model)(batch)
    found = EmbedBatches(model, on_error="null", max_characters=100)(batch)
    problems = found["error"].to_pylist()
    assert [problem is None for problem in problems] == [True, False, False, False, False, True, False, True]
    assert problems[1:5] == [
        "null",
        "int 7, expected a text or a list of tokens",
        "a lone surrogate at character 5",
        "a text of 200 characters, max_characters is 100",
    ]
    assert [row is None for row in found["tokens"].to_pylist()] == [
        problem is not None for problem in problems
    ]
    assert found["text"].to_pylist()[3] == "lone \\ud800"


def test_all_rows_bad(model):
    found = EmbedBatches(model, on_error="null")({"text": [None, None]})
    assert found["layer_0"].null_count == found["error"].to_pylist().count("null") == 2


def test_too_large_for_float16(model):
    embed = EmbedBatches(model, dtype="float16", mix=[1e6, 1e6, 1e6], layers="mix", on_error="null")
    assert embed({"text": ["the bank"]})["error"].to_pylist() == ["a number too large for float16"]


def test_wrong_settings(model):
    with pytest.raises(ConfigError, match="on_error must be one of raise, null"):
        EmbedBatches(model, on_error="drop")
    with pytest.raises(ConfigError, match="expected a column 'text', found body; name text_column"):
        EmbedBatches(model)({"body": ["a"]})
    with pytest.raises(ConfigError, match="max_characters must be a whole number"):
        EmbedBatches(model, max_characters=0)


def test_invalid_utf8_in_arrow_is_a_bad_row(model):
    binary = pa.array([b"good", b"bad \xff"])
    batch = pa.table({"text": pa.Array.from_buffers(pa.string(), 2, binary.buffers())})
    assert EmbedBatches(model, on_error="null")(batch)["error"].to_pylist()[1].startswith("a lone surrogate")


def records(source, **options):
    options = {"column": "text", "id_column": None, "tokens": False, "split": None, **options}
    return list(read_records(source, **options))


def test_tables_with_ids(tmp_path):
    rows = [{"id": 1, "text": "a"}, {"id": "two", "text": None}, {"id": 3, "text": 4}, {"id": 4}]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    assert records(path, id_column="id") == [(1, "a"), ("two", None), (3, 4), (4, None)]
    (tmp_path / "rows.csv").write_text("key,body\nx,a b\ny,c\n", "utf-8")
    assert records(TextColumn(tmp_path / "rows.csv", "body"), id_column="key") == [("x", "a b"), ("y", "c")]
    pa.parquet.write_table(pa.table({"text": ["a", None], "n": [1, 2]}), tmp_path / "rows.parquet")
    assert records(tmp_path / "rows.parquet", id_column="n") == [(1, "a"), (2, None)]
    with pytest.raises(DataError, match=r"has the columns text, n, expected 'body'"):
        records(tmp_path / "rows.parquet", column="body")
    with pytest.raises(DataError, match=r"line 1: has no 'key'"):
        records(path, id_column="key")


def test_ids_and_split_need_their_kind_of_source(tmp_path):
    (tmp_path / "text.txt").write_text("One. Two.\n", "utf-8")
    assert records(tmp_path / "text.txt", split="en") == [(None, "One."), (None, "Two.")]
    with pytest.raises(ConfigError, match="id_column='id' needs a table"):
        records(tmp_path / "text.txt", id_column="id")
    (tmp_path / "rows.jsonl").write_text('{"text": "a"}\n', "utf-8")
    with pytest.raises(ConfigError, match="split is for texts"):
        records(tmp_path / "rows.jsonl", split="en")


def test_shards_are_whole_rows_and_know_their_text():
    rows = [(k, "word " * k) for k in range(1, 8)]
    shards = list(read_shards(iter(rows), 20, with_ids=True))
    assert [value for shard in shards for value in shard.values] == [text for _, text in rows]
    assert [shard.first for shard in shards] == [
        1 + sum(len(s.values) for s in shards[:k]) for k in range(len(shards))
    ]
    changed = [(k, text) if k != 7 else (8, text) for k, text in rows]
    again = list(read_shards(iter(changed), 20, with_ids=True))
    assert [a.digest == b.digest for a, b in zip(shards, again, strict=True)][-1] is False


def test_a_folder_of_shards_reads_as_one(tmp_path, model):
    folder = ShardFolder(tmp_path / "out", {"dtype": "float32"})
    embed = EmbedBatches(model, layers="mix", on_error="null")
    for number, texts in enumerate([TEXTS[:2], [None, "two"], TEXTS[2:]]):
        table = embed({"text": texts}).add_column(0, "line", pa.array(range(len(texts)), pa.int64()))
        write_shard(folder.path(number), table, {"model": "tiny"})
    with pytest.raises(DataError, match="an interrupted"):
        elmokit.read_vectors(tmp_path / "out")
    with pytest.raises(DataError, match="has 3 shards, the text makes 2"):
        folder.finish([2, 2])
    folder.finish([2, 2, 2])
    whole = (tmp_path / "out" / "shards.json").read_text()
    for changed, message in (
        ([1e308, 2, 2], "shards.json is damaged"),
        ([10**40, 2, 2], "shards.json is damaged"),
        ([2, 3, 2], "has 2 rows, shards.json says 3"),
    ):
        (tmp_path / "out" / "shards.json").write_text(json.dumps({"rows": changed}))
        with pytest.raises(DataError, match=message), elmokit.read_vectors(tmp_path / "out") as file:
            list(file)
    (tmp_path / "out" / "shards.json").write_text(whole)
    with elmokit.read_vectors(tmp_path / "out") as file:
        assert [row.text for row in file] == [*TEXTS[:2], None, "two", *TEXTS[2:]]
        assert file[2].vectors is None
        assert file[2].error == "null"
        assert file[-1].vectors.shape == (5, 64)
        assert file.metadata["model"] == "tiny"
    assert elmokit.describe(tmp_path / "out")["sentences"] == 6


def test_a_folder_is_not_overwritten_unasked(tmp_path):
    ShardFolder(tmp_path / "out", {"dtype": "float32"})
    with pytest.raises(DataError, match="holds a job already"):
        ShardFolder(tmp_path / "out", {"dtype": "float32"})
    with pytest.raises(DataError, match="dtype is float16, was float32"):
        ShardFolder(tmp_path / "out", {"dtype": "float16"}, resume=True)
    (tmp_path / "out" / "mine.txt").write_text("keep", "utf-8")
    with pytest.raises(DataError, match="holds other files"):
        ShardFolder(tmp_path / "out", {"dtype": "float32"}, overwrite=True)
