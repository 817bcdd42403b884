"""Vectors as answers: JSON with floats or base64, Arrow, safetensors."""

import asyncio
import base64
import json
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import numpy as np
from fastapi import Request
from fastapi.responses import Response
from safetensors.numpy import save

from elmokit.embed import Floats
from elmokit.serving.gate import ClientGone
from elmokit.serving.problems import Problem
from elmokit.vectors import Layout, Row, arrow_stream

Result = TypeVar("Result")

JSON, ARROW, SAFETENSORS = (
    "application/json",
    "application/vnd.apache.arrow.stream",
    "application/x-safetensors",
)
BYTES_OF_A_FLOAT = {JSON: 12, ARROW: 4, SAFETENSORS: 4}  # at most, on average


async def unless_gone(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """Return the result of the work, or cancel it when the client has gone.

    Raises:
        ClientGone: The client has closed its connection.
    """
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(request.receive())  # the body is read: what comes now is the end
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientGone
    finally:
        task.cancel()
        gone.cancel()


def numbers(vector: Floats, encoding: str) -> Any:  # noqa: ANN401 (what JSON holds)
    """Return a vector for JSON: an array of numbers, or base64 of little-endian float32."""
    if encoding == "base64":
        return base64.b64encode(vector.astype("<f4", copy=False).tobytes()).decode()
    return np.ascontiguousarray(vector)


def chosen_format(accept: str, possible: Sequence[str]) -> str:
    """Return which of these media types a client wants; the first if it takes anything.

    Raises:
        Problem: It takes none of them.

    Example:
        >>> chosen_format("text/html, application/json;q=0.5", [ARROW, JSON])
        'application/json'
    """
    wishes = [part.split(";")[0].strip().lower() for part in accept.split(",")]
    for wish in wishes:
        if wish in possible:
            return wish
        if wish in ("", "*/*", "application/*"):
            return possible[0]
    message = f"Accept asks for {accept[:80]!r}; there is {', '.join(possible)}"
    raise Problem(406, message, param="Accept", code="not_acceptable")


def token_vectors_as_arrow(rows: Sequence[Row], layers: Sequence[int] | None, model: str) -> Response:
    """Return sentences with the vectors of their tokens, (T, D) or (n, T, D), as an Arrow stream."""
    *several, _, dim = rows[0].vectors.shape
    layout = Layout(shape=(*several, -1, dim), dtype="float32", layers=tuple(layers or ()))
    return Response(arrow_stream(rows, layout, {"model": model}), media_type=ARROW)


def token_vectors_as_safetensors(rows: Sequence[Row], layers: Sequence[int] | None, model: str) -> Response:
    """Return the same as safetensors: a tensor `vectors.N` for each text; metadata have its tokens."""
    tensors = {f"vectors.{number}": np.ascontiguousarray(row.vectors) for number, row in enumerate(rows)}
    texts = [{"text": row.text, "tokens": row.tokens, "offsets": row.offsets} for row in rows]
    about = {"model": model, "layers": json.dumps(layers), "texts": json.dumps(texts, ensure_ascii=False)}
    return Response(save(tensors, about), media_type=SAFETENSORS)
