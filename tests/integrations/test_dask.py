"""Vectors computed by Dask."""

import numpy as np
import pytest

import elmokit
from elmokit.formats import save_model
from tests.small_runs import sentences
from tests.tiny import wide_bundle

dask = pytest.importorskip("dask", reason="make test-cluster tests Dask in an environment of its own")
dataframe = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

from elmokit.integrations.dask import EmbedBatches, embed_frame  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
LINES = sentences(60)


@pytest.mark.parametrize("scheduler", ["processes", "threads"])
def test_rows_are_those_of_stream(tmp_path, scheduler):
    save_model(wide_bundle(), tmp_path / "tiny")
    frame = dataframe.from_pandas(pd.DataFrame({"n": range(61), "text": [*LINES, None]}), npartitions=4)
    embed = EmbedBatches(str(tmp_path / "tiny"), layers="mix", dtype="float16", on_error="null")
    lazy = embed_frame(frame, embed)
    assert list(lazy.columns) == ["n", "text", "tokens", "offsets", "vectors", "error"]
    found = lazy.compute(scheduler=scheduler, num_workers=2)
    assert found["n"].tolist() == list(range(61))
    assert dict(lazy.dtypes)["vectors"] == found["vectors"].dtype
    for cell, sentence in zip(found["vectors"], elmokit.load(tmp_path / "tiny").stream(LINES), strict=False):
        np.testing.assert_array_equal(np.array(list(cell), np.float16), sentence.vectors.astype(np.float16))
    assert found["error"].iloc[-1] == "null"
    assert found["vectors"].isna().sum() == 1
