"""Errors as clients get them: in the shape of OpenAI's API."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from fastapi.responses import Response

_TYPES = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}


class Problem(Exception):
    """A request that cannot be answered.

    Args:
        status: Of the HTTP answer.
        message: What was found, what was expected and what to do.
        param: The field at fault.
        code: A short name that programs can compare.
        headers: More headers of the answer.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.code = status, message, param, code
        self.headers = dict(headers or {})

    def response(self) -> Response:
        """Return the answer."""
        kind = _TYPES.get(self.status, "server_error" if self.status >= 500 else "invalid_request_error")
        error = {"message": self.message, "type": kind, "param": self.param, "code": self.code}
        return json_response({"error": error}, status=self.status, headers=self.headers)


def too_large(message: str, param: str | None = None) -> Problem:
    """Return the problem of a request that is over a limit."""
    return Problem(413, message, param=param, code="request_too_large")


def refuse_more(what: str, found: int, limit: int) -> None:
    """Raise the problem of a request with more texts, or tokens, than its limit."""
    if found > limit:
        raise too_large(f"{found} {what} are more than the {limit} of a request", "input")


def invalid(errors: Sequence[Mapping[str, Any]]) -> Problem:
    """Return the problem of a body that does not fit its schema, from pydantic's errors."""
    first = errors[0]
    place = [str(part) for part in first["loc"] if part != "body"]
    message = str(first["msg"]).removeprefix("Value error, ")
    cause = (first.get("ctx") or {}).get("error")
    if first["type"] == "json_invalid":
        message = f"the body is no valid JSON in UTF-8 ({cause})" if cause else "the body is no valid JSON"
        place = []
    param = ".".join(place) or None
    return Problem(400, f"{param}: {message}" if param else message, param=param, code="invalid_value")


def json_response(
    content: object, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return plain data and NumPy arrays as JSON; NaN and infinity become null."""
    body = orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)
    return Response(body, status, dict(headers or {}), "application/json")
