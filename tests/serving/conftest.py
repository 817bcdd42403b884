"""Servers around tiny models, in this process and as a process of its own."""

import json
import os
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from dataclasses import replace

import pytest

pytest.importorskip("fastapi", reason="the server needs the extra `serve`")

import httpx
import numpy as np
from starlette.testclient import TestClient

import elmokit
from elmokit.formats import save_model
from elmokit.model import fit_statistics
from elmokit.serving import ServeSettings, make_app
from tests.task_data import quick_settings, write_tagged
from tests.tiny import tiny_bundle, tiny_config, tiny_model


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory):
    """A small random model with a softmax over ten words, and statistics of sentence vectors."""
    config = tiny_config(cell_dim=32, projection_dim=16, filters=((1, 8), (2, 8)))
    folder = tmp_path_factory.mktemp("served") / "tiny"
    bundle = tiny_bundle(tiny_model(config), tokenizer="rules", vocabulary=True, softmax=True)
    means = np.random.default_rng(0).standard_normal((500, 3, 32)).astype(np.float32)
    weights = np.array([0.5], np.float32)
    pooling = fit_statistics(["the"], weights, means, layer_weights=[1, 0.5, 0.5], num_axes=8)
    save_model(replace(bundle, pooling=pooling), folder)
    return folder


@pytest.fixture(scope="session")
def index_folder(model_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("index") / "articles"
    documents = [
        elmokit.Document(id="rates", text="The bank raised its rates.", metadata={"year": 1999}),
        elmokit.Document(id="river", text="A cat sat by the river.", metadata={"year": 2020}),
    ]
    elmokit.Index.build(documents, folder, model=str(model_folder), language="en")
    return folder


@pytest.fixture(scope="session")
def tagger_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tagger")
    for part in ("train", "dev"):
        write_tagged(folder, part)
    elmokit.train("tagger", folder, encoder="chars", out=folder / "ner", settings=quick_settings("tagger"))
    return folder / "ner"


@pytest.fixture(scope="session")
def embedder(model_folder):
    return elmokit.load(model_folder)


@pytest.fixture(scope="session")
def settings(model_folder, tagger_folder, index_folder):
    return ServeSettings(
        models=(f"tiny={model_folder}",),
        tasks=(f"ner={tagger_folder}",),
        indexes=(str(index_folder),),
        max_bytes=2 << 20,
        max_tokens=20_000,
    )


@pytest.fixture(scope="session")
def app(settings):
    return make_app(settings)


@pytest.fixture
def client(app):
    """A client that runs the application in this process."""
    return TestClient(app, base_url="http://localhost", raise_server_exceptions=False)


class Server:
    """A server in a process of its own."""

    def __init__(self, *arguments, environment=None):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        command = [sys.executable, "-m", "elmokit.cli", "serve", "--port", str(self.port), *arguments]
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})}
        )
        self.log = []
        self.client = httpx.Client(base_url=self.url, timeout=120)
        self._started = threading.Event()
        self.reader = threading.Thread(target=self._read_log)
        self.reader.start()
        assert self._started.wait(120), self.log
        while self.process.poll() is None:  # the socket opens a moment later
            with suppress(httpx.ConnectError):
                self.client.get("/health")
                break

    def _read_log(self):
        for line in self.process.stderr:
            self.log.append(line)
            if "Application startup complete" in line:
                self._started.set()
        self.process.stderr.close()
        self._started.set()

    def events(self, name):
        return [entry for entry in map(json.loads, self.log) if entry["event"] == name]

    def post(self, route, body, **options):
        return self.client.post(route, json=body, **options)


@contextmanager
def running(*arguments, environment=None):
    server = Server(*arguments, environment=environment)
    try:
        yield server
    finally:
        server.client.close()
        server.process.terminate()
        server.process.wait(60)
        server.reader.join()


@pytest.fixture(scope="session")
def server(model_folder, tagger_folder, index_folder):
    served = (
        "--model",
        f"tiny={model_folder}",
        "--task",
        f"ner={tagger_folder}",
        "--index",
        str(index_folder),
    )
    with running(*served) as found:
        yield found
