"""Hostile requests get an answer that says why, and nothing else."""

import asyncio
import logging
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from elmokit.errors import ConfigError
from elmokit.serving import ServeSettings, make_app
from elmokit.serving.gate import Gate, JSONLines, PlainLines
from elmokit.serving.serve_settings import named

ROUTES = [
    *("embeddings", "tokens", "score", "fill", "generate", "predict/ner", "neighbours", "uses"),
    "search/articles",
]
HOSTILE = {
    "nothing": b"",
    "no JSON": b"hello",
    "deep nesting": b'{"input": ' + b"[" * 100_000,
    "balanced deep nesting": b'{"input": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "invalid UTF-8": b'{"model": "tiny", "input": "\xff\xfe"}',
    "half a surrogate": b'{"model": "tiny", "input": "\\ud800"}',
    "not a number": b'{"model": "tiny", "input": NaN}',
    "infinity": b'{"model": "tiny", "input": "a", "temperature": 1e999}',
    "a huge number": b'{"model": "tiny", "input": ' + b"9" * 100_000 + b"}",
    "a list": b"[]",
    "null": b"null",
    "wrong types": b'{"model": {"a": 1}, "input": {"b": 2}, "word": 3, "query": [], "prompt": {}}',
    "a path as a model": b'{"model": "../../etc/passwd", "input": "a [MASK]", "prompt": "a"}',
    "too large": b'{"model": "tiny", "input": "' + b"a" * (10 << 20) + b'"}',
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("route", ROUTES)
def test_hostile_bodies(client, route, body):
    answer = client.post(f"/v1/{route}", content=body, headers={"content-type": "application/json"})
    assert 400 <= answer.status_code < 500
    error = answer.json()["error"]
    assert error["message"]
    assert "Traceback" not in answer.text
    assert "passwd" not in answer.text or "there is no model" in error["message"]


def test_a_body_without_its_length_is_measured_as_it_comes(client):
    answer = client.post("/v1/embeddings", content=(b"a" * (1 << 20) for _ in range(10)))
    assert answer.status_code == 413
    assert "more than the 2097152 bytes that are allowed" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "path",
    [
        "/../pyproject.toml",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2fserver.py",
        "//etc/passwd",
        "/app.py",
        "/%00",
    ],
)
def test_only_the_page_can_be_had(client, path):
    answer = client.get(path)
    assert answer.status_code in (400, 404)
    assert b"import" not in answer.content


def test_headers(client):
    for path in ("/", "/health", "/v1/models", "/nothing"):
        headers = client.get(path).headers
        assert "unsafe" not in headers["content-security-policy"]
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers


def test_request_ids(client):
    assert client.get("/health", headers={"x-request-id": "abc-1"}).headers["x-request-id"] == "abc-1"
    made = client.get("/health", headers={"x-request-id": "bad id\t<script>"}).headers["x-request-id"]
    assert len(made) == 32


async def _reach(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"in"})


@pytest.fixture
def locked():
    return TestClient(Gate(_reach, ServeSettings(api_key="right key"), lambda *counted: None))


@pytest.mark.parametrize(
    "sent", ["", "right key", "Bearer", "Bearer wrong", "Basic right key", "Bearer right key2"]
)
def test_a_wrong_key(locked, sent):
    for path in ("/v1/models", "/v1/embeddings", "/metrics"):
        answer = locked.get(path, headers={"authorization": sent})
        assert answer.status_code == 401
        assert answer.json()["error"]["code"] == "invalid_api_key"
        assert "right key" not in answer.text


def test_the_right_key(locked):
    assert locked.get("/v1/models", headers={"authorization": "Bearer right key"}).status_code == 200
    for path in ("/health", "/ready", "/", "/app.js"):
        assert locked.get(path).status_code == 200


def test_keys_are_compared_in_constant_time(locked, monkeypatch):
    compared = []

    def compare(one, other):
        compared.append((len(one), len(other)))
        return False

    monkeypatch.setattr("elmokit.serving.gate.hmac.compare_digest", compare)
    for key in ("", "a", "x" * 5000):
        locked.get("/v1/models", headers={"authorization": f"Bearer {key}"})
    assert compared == [(32, 32)] * 3  # digests, whatever the length of the key


def test_other_machines_need_a_key():
    for host in ("127.0.0.1", "::1", "localhost"):
        ServeSettings(host=host)
    ServeSettings(host="0.0.0.0", api_key="k")
    ServeSettings(host="0.0.0.0", insecure=True)
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.org"):
        with pytest.raises(
            ConfigError, match="lets other machines connect, and there is no key; set api_key"
        ):
            ServeSettings(host=host)
    with pytest.raises(ConfigError, match="the API key is empty"):
        ServeSettings(api_key=" ")


def test_names_of_models():
    with pytest.raises(ConfigError, match="would both be called 'en'"):
        named(("en", "models/en"))


def test_a_fault_of_the_server_is_no_traceback(caplog):
    async def broken(scope, receive, send):
        raise RuntimeError("the text was: secret")

    client = TestClient(Gate(broken, ServeSettings(), lambda *counted: None), base_url="http://localhost")
    with caplog.at_level(logging.INFO, "elmokit.serving.gate"):
        answer = client.get("/v1/models", headers={"x-request-id": "abc"})
    assert answer.status_code == 500
    assert answer.json()["error"]["message"] == "the server failed; its log has more under request abc"
    lines = "\n".join(map(JSONLines().format, caplog.records))
    assert '"error": "RuntimeError"' in lines
    assert "test_security.py" in lines
    assert "secret" not in lines + answer.text


def test_logs_hold_no_texts():
    record = logging.LogRecord(
        "elmokit.embed.reader", 30, "", 0, "letters of %.30r are odd", ("secret",), None
    )
    assert "secret" not in JSONLines().format(record)
    assert "secret" not in PlainLines().format(record)


def test_people_at_a_terminal_read_lines():
    record = logging.makeLogRecord(
        {
            "name": "elmokit",
            "msg": "serving",
            "fields": {"address": "http://[::1]:80", "models": ["en", "zh"]},
        }
    )
    assert PlainLines().format(record).endswith("  serving  address=http://[::1]:80  models=en, zh")


def test_a_body_that_does_not_come(client):
    async def never():
        await asyncio.sleep(3600)

    sent = []

    async def send(message):
        sent.append(message)

    gate = Gate(_reach, ServeSettings(body_seconds=0.01), lambda *counted: None)
    scope = {"type": "http", "method": "POST", "path": "/v1/embeddings", "headers": []}
    asyncio.run(gate(scope, never, send))
    assert sent[0]["status"] == 408


def test_cors_is_closed_unless_opened(client, settings):
    site = "https://a.example"
    preflight = {
        "origin": site,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization, content-type",
    }
    answer = client.options("/v1/embeddings", headers=preflight)
    assert "access-control-allow-origin" not in answer.headers
    opened = TestClient(make_app(replace(settings, cors_origins=(site,), api_key="k", tasks=(), indexes=())))
    answer = opened.options("/v1/embeddings", headers=preflight)  # browsers ask this without the key
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, site)
    body = {"model": "tiny", "input": "a"}
    for headers, status in (({}, 401), ({"authorization": "Bearer k"}, 200)):
        answer = opened.post("/v1/embeddings", json=body, headers={"origin": site, **headers})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (status, site)
    answer = opened.options("/v1/embeddings", headers=preflight | {"origin": "https://b.example"})
    assert answer.status_code == 400


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8000", 200),
        ("127.0.0.1", 200),
        ("[::1]:80", 200),
        ("evil.example:8000", 403),
        ("1.2.3.4", 403),
    ],
)
def test_a_web_site_cannot_pretend_to_be_this_machine(host, status):
    """It can give its own name this machine's address: its scripts are then of the same origin."""
    for settings, expected in ((ServeSettings(), status), (ServeSettings(insecure=True), 200)):
        client = TestClient(Gate(_reach, settings, lambda *counted: None))
        assert client.get("/v1/models", headers={"host": host}).status_code == expected
