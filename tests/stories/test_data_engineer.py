"""A data engineer embeds a file into Parquet and opens it with pandas, polars and duckdb."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import elmokit
from elmokit.cli import main

pandas, polars, duckdb = map(pytest.importorskip, ("pandas", "polars", "duckdb"))

LINES = ["The bank raised its rates.", "", "我们去银行。", "Rivers have banks."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("engineer")
    (folder / "messages.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    for name, given in (("tokens", ["--layers", "0,2"]), ("sentences", ["--pooling", "mean"])):
        target = folder / f"{name}.parquet"
        done = CliRunner().invoke(main, ["embed", str(folder / "messages.txt"), "-o", str(target), *given])
        assert done.exit_code == 0, done.output
    return folder


def test_sentence_vectors_in_three_libraries(folder):
    path = str(folder / "sentences.parquet")
    with_pandas = np.stack(pandas.read_parquet(path)["vector"])
    with_polars = polars.read_parquet(path)["vector"].to_numpy()
    rows = duckdb.sql(f"select vector from '{path}' order by line").fetchall()
    with_duckdb = np.stack([row[0] for row in rows])
    for found in (with_pandas, with_polars, with_duckdb):
        assert found.shape == (4, 384)
        np.testing.assert_allclose(found, with_pandas, atol=1e-6)
    assert polars.read_parquet(path)["text"].to_list() == LINES
    first = f"(select vector::float[] from '{path}' where line = 1)"
    nearest = duckdb.sql(
        f"select text from '{path}' where line > 1 and text != '' "
        f"order by list_cosine_similarity(vector::float[], {first}) desc limit 1"
    ).fetchall()
    assert nearest == [("Rivers have banks.",)]


def test_tokens_and_their_layers(folder):
    path = folder / "tokens.parquet"
    table = pandas.read_parquet(path)
    assert list(table.columns) == ["line", "text", "tokens", "offsets", "layer_0", "layer_2"]
    first = table.iloc[0]
    assert list(first["tokens"]) == ["The", "bank", "raised", "its", "rates", "."]
    expected = elmokit.load("en").embed(LINES[0]).layers[2, 1]
    np.testing.assert_allclose(first["layer_2"][1], expected, atol=1e-5)
    exploded = polars.read_parquet(path).select("line", "tokens", "layer_2").explode("tokens", "layer_2")
    assert exploded["tokens"].drop_nulls().len() == sum(map(len, table["tokens"]))
    counted = duckdb.sql(f"select sum(len(tokens)), count(*) from '{path}'").fetchall()
    assert counted == [(exploded["tokens"].drop_nulls().len(), 4)]
    said = json.loads(pq.read_schema(path).metadata[b"elmokit"])
    assert (said["layers"], said["elmokit"]) == ([0, 2], elmokit.__version__)
