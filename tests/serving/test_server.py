"""The server as a process: real clients, signals, keys, workers, long texts."""

import asyncio
import signal
import threading
import time

import numpy as np
import pytest

from tests.serving.conftest import running


@pytest.fixture(scope="module")
def openai():
    return pytest.importorskip("openai")


def test_the_official_client(openai, server, embedder):
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none")
    texts = ["the cat sat", "a river bank"]
    for options in ({}, {"encoding_format": "float"}, {"encoding_format": "base64"}):
        answer = client.embeddings.create(model="tiny", input=texts, **options)
        vectors = [one.embedding for one in answer.data]
        if options.get("encoding_format") != "base64":
            np.testing.assert_allclose(vectors, embedder.encode(texts), rtol=1e-5, atol=1e-6)
    assert answer.usage.total_tokens == 6
    assert [model.id for model in client.models.list()] == ["tiny"]
    with pytest.raises(openai.NotFoundError, match="there is no model 'gpt'"):
        client.embeddings.create(model="gpt", input="a")
    with pytest.raises(openai.BadRequestError, match="numbers of tokens"):
        client.embeddings.create(model="tiny", input=[1, 2])


def test_the_official_client_many_at_once(openai, server, embedder):
    texts = [f"the cat {'sat ' * (n % 7)} by river {n}" for n in range(40)]

    async def main():
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
            calls = [client.embeddings.create(model="tiny", input=text) for text in texts]
            return [answer.data[0].embedding for answer in await asyncio.gather(*calls)]

    np.testing.assert_allclose(asyncio.run(main()), embedder.encode(texts), rtol=1e-5, atol=1e-6)


def test_a_long_text_does_not_hold_up_short_ones(server, embedder):
    done = []
    long = "the cat sat . " * 25_000  # 100,000 tokens

    def send():
        assert server.post("/v1/embeddings", {"model": "tiny", "input": long}).status_code == 200
        done.append("long")

    thread = threading.Thread(target=send)
    thread.start()
    for _ in range(5):
        answer = server.post("/v1/embeddings", {"model": "tiny", "input": "a cat"})
        assert answer.status_code == 200
    assert done == []
    thread.join()
    assert done == ["long"]


def test_the_log_has_requests_and_no_texts(server):
    server.post(
        "/v1/embeddings", {"model": "tiny", "input": "verysecretword"}, headers={"x-request-id": "mine"}
    )
    server.client.get("/health")  # its line comes after the other
    (entry,) = [one for one in server.events("request") if one["id"] == "mine"]
    assert (entry["method"], entry["route"], entry["status"]) == ("POST", "/v1/embeddings", 200)
    assert "verysecretword" not in "".join(server.log)
    (start,) = server.events("serving")
    assert (start["address"], start["models"], start["tasks"]) == (server.url, ["tiny"], ["ner"])
    assert start["indexes"] == ["articles"]


def test_sigterm_finishes_what_is_running(model_folder):
    with running("--model", f"tiny={model_folder}") as server:
        found = []
        text = "the cat sat . " * 25_000
        thread = threading.Thread(
            target=lambda: found.append(server.post("/v1/embeddings", {"model": "tiny", "input": text}))
        )
        thread.start()
        deadline = time.monotonic() + 30
        while "elmokit_queue_requests 1.0" not in server.client.get("/metrics").text:
            assert time.monotonic() < deadline
        server.process.send_signal(signal.SIGTERM)
        thread.join()
        assert found[0].status_code == 200
        assert server.process.wait(30) in (0, -signal.SIGTERM)


def test_a_key_and_several_workers(model_folder):
    environment = {"ELMOKIT_API_KEY": "secret"}
    with running("--model", f"tiny={model_folder}", "--workers", "2", environment=environment) as server:
        body = {"model": "tiny", "input": "a cat"}
        assert server.post("/v1/embeddings", body).status_code == 401
        headers = {"authorization": "Bearer secret"}
        for _ in range(6):
            assert server.post("/v1/embeddings", body, headers=headers).status_code == 200
        text = server.client.get("/metrics", headers=headers).text
        assert 'elmokit_requests_total{route="/v1/embeddings",status="200"} 6.0' in text
    assert "secret" not in "".join(server.log)
