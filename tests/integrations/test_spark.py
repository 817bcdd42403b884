"""Vectors computed by Spark, which needs Java."""

import os
import shutil
import sys

import numpy as np
import pytest

import elmokit
from elmokit.errors import ConfigError
from elmokit.formats import save_model
from tests.small_runs import sentences
from tests.tiny import wide_bundle

pyspark = pytest.importorskip("pyspark", reason="make test-cluster tests Spark in an environment of its own")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java: install a JRE, or set JAVA_HOME", allow_module_level=True)
from pyspark.sql import SparkSession  # noqa: E402

from elmokit.integrations.spark import EmbedBatches, embed_frame  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
LINES = sentences(60)


@pytest.fixture(scope="module")
def spark():
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
    yield session
    session.stop()


@pytest.mark.parametrize("layers", ["mix", "all"])
def test_rows_are_those_of_stream(spark, tmp_path, layers):
    save_model(wide_bundle(), tmp_path / "tiny")
    rows = [(k, line) for k, line in enumerate([*LINES, None])]
    frame = spark.createDataFrame(rows, "n int, text string").repartition(3)
    embed = EmbedBatches(str(tmp_path / "tiny"), layers=layers, on_error="null")
    found = sorted(embed_frame(frame, embed).collect(), key=lambda row: row.n)
    assert [row.n for row in found] == list(range(61))
    for row, sentence in zip(found, elmokit.load(tmp_path / "tiny").stream(LINES), strict=False):
        assert row.tokens == sentence.tokens
        assert [tuple(pair) for pair in row.offsets] == sentence.offsets
        vectors = row.vectors if layers == "mix" else row.layer_2
        expected = sentence.vectors if layers == "mix" else sentence.layers[2]
        np.testing.assert_allclose(np.array(vectors, np.float32), expected, atol=2e-6)
    assert found[-1].error == "null"


def test_float16_is_refused(spark):
    frame = spark.createDataFrame([("a",)], "text string")
    with pytest.raises(ConfigError, match="Spark has no float16"):
        embed_frame(frame, EmbedBatches("en", dtype="float16"))
