"""What every request passes: the key, the limits of its body, and the record of its answer.

This is ASGI middleware and not FastAPI's own kind, which would hide from handlers that a client has gone.
"""

import asyncio
import hmac
import json
import logging
import re
import time
import traceback
import uuid
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from elmokit.serving.problems import Problem, too_large
from elmokit.serving.serve_settings import ServeSettings, is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

logger = logging.getLogger(__name__)

_REQUEST_ID = re.compile(r"[\w.-]{1,64}")
_LOCKED_PATHS = ("/v1/", "/metrics")
_CLIENT_GONE = 499  # as nginx logs it
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
        "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


class ClientGone(Exception):
    """The client has closed its connection."""


class Gate:
    """Lets in who has the key and keeps to the limits; logs and counts the answers.

    Args:
        app: What is behind it.
        settings: The key and the limits.
        count: Called with the route, the status and the seconds of each request.
    """

    def __init__(
        self, app: "ASGIApp", settings: ServeSettings, count: "Callable[[str, int, float], object]"
    ) -> None:
        self._app, self._settings, self._count = app, settings, count
        self._key = None if settings.api_key is None else _digest(settings.api_key.encode())
        self._local = not (settings.api_key or settings.insecure)
        self._own_headers = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        headers: dict[bytes, bytes] = dict(scope["headers"])
        given = headers.get(b"x-request-id", b"").decode("latin-1")
        request_id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        status = 0
        scope["request_id"] = request_id
        body: bytes | None = None

        async def receive_again() -> "Message":
            nonlocal body
            if body is None:  # it was handed on: what comes now is the end of the connection
                return await receive()
            whole, body = body, None
            return {"type": "http.request", "body": whole, "more_body": False}

        async def send_with_headers(message: "Message") -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = (*self._own_headers, (b"x-request-id", request_id.encode()))
                message = {**message, "headers": [*message.get("headers", ()), *own]}
            await send(message)

        async def answer(problem: Problem) -> None:
            if not status:  # else an answer has begun, and can only be broken off
                await problem.response()(scope, receive, send_with_headers)

        try:
            self._check_host(headers.get(b"host"))
            self._check_key(scope["path"], headers)
            body = await _whole_body(receive, self._settings, headers.get(b"content-length", b"0"))
            await self._app(scope, receive_again, send_with_headers)
        except Problem as problem:
            await answer(problem)
        except ClientGone:
            status = _CLIENT_GONE
        except Exception as error:  # noqa: BLE001 (whatever it is, a client gets no traceback)
            _log("error", id=request_id, error=type(error).__name__, where=_where(error))
            await answer(internal_error(request_id))
        self._record(scope, request_id, status, time.perf_counter() - begun)

    def _check_host(self, given: bytes | None) -> None:
        """Refuse another name than this machine's where no key is needed.

        A web page can give its own name the address of this machine, and is then of the same origin.
        """
        if not self._local or given is None:
            return
        host = given.decode("latin-1")
        name = re.sub(r":\d*$", "", host).strip("[]").lower()
        if not is_loopback(name):
            raise Problem(
                403,
                f"{host[:100]!r} is not the name of this machine; ask for localhost. Behind a proxy that "
                "passes on the name, start the server with a key, or with insecure=True",
                code="wrong_host",
            )

    def _check_key(self, path: str, headers: dict[bytes, bytes]) -> None:
        """Refuse a request without the key; the page itself and the signs of life need none.

        Digests have one length and are compared in constant time, so that no time tells how much of a key is
        right.
        """
        if self._key is None or not path.startswith(_LOCKED_PATHS):
            return
        scheme, _, key = headers.get(b"authorization", b"").partition(b" ")
        right = hmac.compare_digest(_digest(key.strip()), self._key)
        if not (right and scheme.lower() == b"bearer"):
            raise Problem(
                401,
                "the API key is missing or wrong; send it as `Authorization: Bearer KEY`",
                code="invalid_api_key",
                headers={"www-authenticate": "Bearer"},
            )

    def _record(self, scope: "Scope", request_id: str, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "other")
        self._count(route, status, seconds)
        milliseconds = round(1000 * seconds, 2)
        _log("request", id=request_id, method=scope["method"], route=route, status=status, ms=milliseconds)


def internal_error(request_id: str) -> Problem:
    """Return the problem of a fault of the server."""
    message = f"the server failed; its log has more under request {request_id}"
    return Problem(500, message, code="internal_error")


async def _whole_body(receive: "Receive", settings: ServeSettings, length: bytes) -> bytes:
    """Receive the body of a request.

    Raises:
        Problem: It is too large, or comes too slowly.
        ClientGone: It does not come at all.
    """
    parts, size, more = [], 0, True
    problem = too_large(f"the body has more than the {settings.max_bytes} bytes that are allowed")
    if length.isdigit() and int(length[:20]) > settings.max_bytes:
        raise problem
    try:
        async with asyncio.timeout(settings.body_seconds):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone
                parts.append(message.get("body", b""))
                size, more = size + len(parts[-1]), message.get("more_body", False)
                if size > settings.max_bytes:
                    raise problem
    except TimeoutError:
        seconds = settings.body_seconds
        raise Problem(408, f"the body did not come within {seconds:g} s", code="timeout") from None
    return b"".join(parts)


def _digest(key: bytes) -> bytes:
    return sha256(key).digest()


def _where(error: BaseException) -> list[str]:
    """Return the lines of the traceback without the message, which may quote a text."""
    frames = traceback.extract_tb(error.__traceback__)
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]


def _log(event: str, **fields: Any) -> None:  # noqa: ANN401 (what JSON can hold)
    logger.info(event, extra={"fields": fields})


class JSONLines(logging.Formatter):
    """Formats records as JSON, a line each. Messages of the library are shown without their values.

    Those values may be texts of users; the message itself is a constant of the program.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return json.dumps(self._entry(record), ensure_ascii=False)

    def _entry(self, record: logging.LogRecord) -> dict[str, Any]:
        entry = {"time": self.formatTime(record), "level": record.levelname, "event": str(record.msg)}
        if record.name.startswith("uvicorn"):
            entry["event"] = record.getMessage()
        return entry | getattr(record, "fields", {})


class PlainLines(JSONLines):
    """Formats the same for people at a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        time, _, event, *values = self._entry(record).items()
        shown = (f"{name}={', '.join(value) if isinstance(value, list) else value}" for name, value in values)
        return "  ".join((time[1][11:19], event[1], *shown))
