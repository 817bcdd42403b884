"""A Ray cluster of two nodes on this machine: the same vectors, whatever dies."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import elmokit
from elmokit.errors import ConfigError, DataError
from elmokit.formats import save_model
from tests.small_runs import sentences
from tests.tiny import wide_bundle

os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112  # else tests take minutes on a busy machine
ray = pytest.importorskip("ray", reason="make test-cluster tests Ray in an environment of its own")
psutil = pytest.importorskip("psutil")
from ray.cluster_utils import Cluster  # noqa: E402

from elmokit.integrations.ray import EmbedBatches, embed_dataset  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own

LINES = sentences(3000)


@pytest.fixture(scope="module")
def cluster():
    """Two nodes: the first one has the driver, the second one may be taken away."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    cluster.wait_for_nodes()
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture
def model(tmp_path):
    save_model(wide_bundle(), tmp_path / "tiny")
    return str(tmp_path / "tiny")


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text.txt").write_text("\n".join(LINES) + "\n", "utf-8")
    return tmp_path / "text.txt"


def check_all(out, model, lines=LINES):
    """Every line once and in order, with the vectors that `stream` gives it."""
    with elmokit.read_vectors(out) as file:
        assert [row.line for row in file] == list(range(1, len(lines) + 1))
        for row, sentence in zip(file, elmokit.load(model).stream(lines), strict=True):
            assert row.text == sentence.text
            # The promise for float32: the company of a sentence changes rounding only.
            np.testing.assert_allclose(row.vectors, sentence.vectors, atol=2e-6)


def run_beside(text, out, embed, **options):
    """Start `embed_dataset` in a thread; wait for its first shards."""
    result = {}

    def work():
        try:
            result["report"] = embed_dataset(text, out, embed=embed, **options)
        except elmokit.ElmoError as error:
            result["error"] = error

    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive() and len(list(out.glob("*.parquet"))) < 3:
        time.sleep(0.01)
    assert thread.is_alive(), result
    return thread, result


def actors():
    return [
        one
        for one in psutil.process_iter(["cmdline"])
        if "ray::ClusterActor" in "".join(one.info["cmdline"] or ())
    ]


def test_rows_are_those_of_stream(cluster, text, model, tmp_path):
    embed = EmbedBatches(model, layers="mix")
    report = embed_dataset(text, tmp_path / "out", embed=embed, actors=2, shard_characters=20_000)
    assert (report.rows, report.bad_rows, report.lost_actors) == (len(LINES), 0, 0)
    assert report.shards == len(list((tmp_path / "out").glob("*.parquet"))) > 2
    check_all(tmp_path / "out", model)
    with elmokit.read_vectors(tmp_path / "out" / "000001.parquet") as shard:
        assert shard[0].line > 1
        assert shard.metadata["tokens"] > 0
    assert embed_dataset(text, tmp_path / "out", embed=embed, shard_characters=20_000, resume=True) is None
    with pytest.raises(DataError, match="layers is top, was mix"):
        embed_dataset(
            text,
            tmp_path / "out",
            embed=EmbedBatches(model, layers="top"),
            shard_characters=20_000,
            resume=True,
        )


def test_an_actor_is_killed(cluster, text, model, tmp_path):
    thread, result = run_beside(
        text, tmp_path / "out", EmbedBatches(model, layers="mix"), actors=2, shard_characters=500
    )
    actors()[0].send_signal(signal.SIGKILL)
    thread.join()
    assert result["report"].lost_actors >= 1, result
    check_all(tmp_path / "out", model)


def test_a_node_is_removed(cluster, text, model, tmp_path):
    node = cluster.add_node(num_cpus=1)
    thread, result = run_beside(
        text, tmp_path / "out", EmbedBatches(model, layers="mix"), actors=3, shard_characters=500
    )
    cluster.remove_node(node)
    thread.join()
    assert "report" in result, result
    check_all(tmp_path / "out", model)


def test_the_driver_is_killed(cluster, text, model, tmp_path):
    out = tmp_path / "out"
    code = (
        "from elmokit.integrations.ray import *; "
        f"embed_dataset({str(text)!r}, {str(out)!r}, embed=EmbedBatches({model!r}, layers='mix'), "
        f"address={cluster.address!r}, actors=2, shard_characters=500)"
    )
    driver = subprocess.Popen([sys.executable, "-W", "ignore", "-c", code])
    while driver.poll() is None and len(list(out.glob("*.parquet"))) < 5:
        time.sleep(0.01)
    driver.kill()
    driver.wait()
    assert not (out / "shards.json").exists()
    with pytest.raises(DataError, match="interrupted"):
        elmokit.read_vectors(out)
    deadline = time.monotonic() + 60
    while actors() and time.monotonic() < deadline:  # its actors end with it
        time.sleep(0.1)
    finished = {path: path.stat().st_mtime_ns for path in out.glob("*.parquet")}
    report = embed_dataset(
        text, out, embed=EmbedBatches(model, layers="mix"), actors=2, shard_characters=500, resume=True
    )
    assert 0 < report.resumed_rows < report.rows == len(LINES)
    assert all(path.stat().st_mtime_ns == before for path, before in finished.items())
    check_all(out, model)


def test_bad_rows_are_counted_with_their_ids(cluster, model, tmp_path):
    texts = ["fine", None, 7, "lone \ud800", "x" * 10_000_000, "also fine"]
    table = tmp_path / "rows.jsonl"
    table.write_text("\n".join(json.dumps({"key": f"k{n}", "text": t}) for n, t in enumerate(texts)), "utf-8")
    with pytest.raises(DataError, match="row 2 has null"):
        embed_dataset(table, tmp_path / "raised", embed=EmbedBatches(model), actors=1)
    assert not (tmp_path / "raised").exists()  # there is nothing to resume
    report = embed_dataset(
        table, tmp_path / "out", embed=EmbedBatches(model, on_error="null"), id_column="key", actors=1
    )
    assert (report.rows, report.bad_rows) == (6, 4)
    with elmokit.read_vectors(tmp_path / "out") as file:
        assert [row.id for row in file] == ["k0", "k1", "k2", "k3", "k4", "k5"]
        assert [row.error is None for row in file] == [True, False, False, False, False, True]
        assert [row.layers is None for row in file] == [False, True, True, True, True, False]


@pytest.mark.parametrize("name", ["vectors.h5", "vectors.parquet", "vectors.npy"])
def test_one_file_of_any_format(cluster, text, model, tmp_path, name):
    report = embed_dataset(
        text, tmp_path / name, embed=EmbedBatches(model), actors=2, shard_characters=50_000, resume=True
    )
    assert report.rows == len(LINES)
    assert not (tmp_path / f"{name}.part").exists()
    elmokit.embed_file(elmokit.load(model), text, tmp_path / f"plain-{name}")
    with (
        elmokit.read_vectors(tmp_path / name) as ours,
        elmokit.read_vectors(tmp_path / f"plain-{name}") as plain,
    ):
        assert len(ours) == len(plain)
        for a, b in zip(ours, plain, strict=True):
            assert (a.text, a.tokens, a.offsets) == (b.text, b.tokens, b.offsets)
            mine, theirs = (one.vectors if one.layers is None else one.layers for one in (a, b))
            np.testing.assert_allclose(mine, theirs, atol=2e-6)


def test_in_a_pipeline_of_ones_own(cluster, model):
    data = ray.data.from_items([{"id": k, "text": line} for k, line in enumerate(LINES[:200])])
    found = data.map_batches(
        EmbedBatches,
        fn_constructor_kwargs={"model": model, "layers": "mix"},
        batch_format="pyarrow",
        batch_size=50,
        compute=ray.data.ActorPoolStrategy(size=2),
    ).take_all()
    expected = list(elmokit.load(model).stream(LINES[:200]))
    for row in found:
        vectors = np.array([list(vector) for vector in row["vectors"]], np.float32)
        np.testing.assert_allclose(vectors, expected[row["id"]].vectors, atol=2e-6)
    assert sorted(row["id"] for row in found) == list(range(200))


def test_a_second_cluster_is_refused(cluster, text, model, tmp_path):
    with pytest.raises(ConfigError, match="connected to a cluster already"):
        embed_dataset(text, tmp_path / "out", embed=EmbedBatches(model), address="other:6379")


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "[::1]:1", "127.0.0.1:99999"])
def test_an_address_where_nothing_answers(address, monkeypatch):
    from elmokit.integrations.ray_actors import cluster

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(ConfigError, match="nothing answers at"), cluster(address):
        pass


def test_the_command(cluster, text, model, tmp_path):
    base = [sys.executable, "-W", "ignore", "-m", "elmokit.cli", "embed", str(text), "-m", model]
    base += ["-o", str(tmp_path / "out"), "--layers", "mix", "--ray", cluster.address]
    done = subprocess.run([*base, "--actors", "2", "--json"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["rows"] == len(LINES)
    check_all(tmp_path / "out", model)
    again = subprocess.run([*base, "--resume"], capture_output=True, text=True, check=True)
    assert "is complete (3,000 rows)" in again.stderr
    wrong = subprocess.run([*base, "--workers", "2"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "--workers has no effect with --ray" in wrong.stderr


def test_the_folder_of_another_machine_is_missed(cluster, text, model, tmp_path, monkeypatch):
    from elmokit.integrations import ray_actors

    monkeypatch.setattr(ray_actors.Pool, "results", lambda self, shards: iter([(next(shards), {})]))
    with pytest.raises(DataError, match="choose a folder that all machines of the cluster share"):
        embed_dataset(text, Path(tmp_path / "out"), embed=EmbedBatches(model))
