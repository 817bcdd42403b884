"""Ten thousand requests with disconnects, oversized bodies and slow clients, against a server of its own.

    python -m tests.serving.soak --requests 10000

Afterwards every accepted request must have got the vectors of its own text, the queue must be empty, and the
memory of the server where it was when it had warmed up.
"""

import argparse
import asyncio
import base64
import json
import random
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil

import elmokit
from elmokit.formats import save_model
from tests.serving.conftest import running
from tests.tiny import tiny_bundle, tiny_config, tiny_model

CLIENTS = 32
GROWTH_MB = 60  # of a process with several threads, after thousands of requests


async def one(port, choose, embedder, counts):
    """Send one request in one of several manners, and check the answer if there is one."""
    texts = [" ".join(choose.choices(["cat", "bank", "river", "né", "中", "sat"], k=choose.randint(1, 60)))]
    texts *= choose.choice([1, 1, 1, 8])
    manner = choose.choices(["whole", "leaves", "half", "large", "slow"], [60, 20, 8, 6, 6])[0]
    body = json.dumps({"model": "tiny", "input": texts, "encoding_format": "base64"}).encode()
    if manner == "large":
        body = b"x" * (3 << 20)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = "POST /v1/embeddings HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
    writer.write(f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode())
    counts[manner] = counts.get(manner, 0) + 1
    try:
        if manner == "half":
            writer.write(body[: len(body) // 2])
            await writer.drain()
            return
        if manner == "slow":
            for start in range(0, len(body), max(1, len(body) // 4)):
                writer.write(body[start : start + max(1, len(body) // 4)])
                await writer.drain()
                await asyncio.sleep(0.02)
        else:
            writer.write(body)
        await writer.drain()
        if manner == "leaves":
            await asyncio.sleep(choose.random() * 0.01)
            return
        status = int((await reader.readline()).split()[1])
        answer = (await reader.read()).split(b"\r\n\r\n", 1)[1]
        if manner == "large":
            assert status == 413, status
            return
        assert status == 200, (status, answer[:200])
        found = [
            np.frombuffer(base64.b64decode(one["embedding"]), "<f4") for one in json.loads(answer)["data"]
        ]
        np.testing.assert_allclose(found, embedder.encode(texts), rtol=1e-4, atol=1e-5)
        counts["checked"] = counts.get("checked", 0) + 1
    except ConnectionError:
        assert manner == "large", manner  # the server need not read what it refuses
    finally:
        writer.close()


async def send(port, number, embedder, seed, counts):
    choose = random.Random(seed)

    async def client():
        for _ in range(number // CLIENTS):
            await one(port, choose, embedder, counts)

    await asyncio.gather(*(client() for _ in range(CLIENTS)))


def wait_until_idle(server):
    """Wait until the queue is empty: requests of clients that have just left may still be there."""
    deadline = time.monotonic() + 10
    empty = ("elmokit_queue_requests 0.0", "elmokit_queue_tokens 0.0")
    while not all(line in server.client.get("/metrics").text for line in empty):
        assert time.monotonic() < deadline, "the queue does not become empty"


def soak(requests):
    """Run it and return what happened."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tiny"
        config = tiny_config(cell_dim=32, projection_dim=16, filters=((1, 8), (2, 8)))
        save_model(tiny_bundle(tiny_model(config), tokenizer="rules"), path)
        embedder = elmokit.load(path)
        with running("--model", str(path), "--max-bytes", "2097152") as server:
            process, counts = psutil.Process(server.process.pid), {}
            asyncio.run(send(server.port, max(CLIENTS, requests // 4), embedder, 1, {}))  # warm up
            before = process.memory_info().rss
            asyncio.run(send(server.port, requests, embedder, 2, counts))
            wait_until_idle(server)
            grown = (process.memory_info().rss - before) / 1e6
            faults = len(server.events("error"))
    assert faults == 0
    assert grown < GROWTH_MB, f"memory grew by {grown:.0f} MB"
    return counts | {"grown_mb": round(grown, 1)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=10_000)
    print(soak(parser.parse_args().requests))
