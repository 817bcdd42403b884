"""Uses of a word: `/v1/neighbours` and `/v1/uses`. Texts come with the request; no file is opened for it."""

import io
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
from fastapi import APIRouter, Header, Request
from fastapi.responses import Response

from elmokit.embed import Floats
from elmokit.search import WordUses, find_uses, nearest_uses, plane
from elmokit.serving.answers import JSON, chosen_format, unless_gone
from elmokit.serving.problems import json_response
from elmokit.serving.request_types import NeighboursRequest, UsesRequest
from elmokit.serving.served import Served
from elmokit.serving.strict_json import StrictRoute

PARQUET = "application/vnd.apache.parquet"
_MOST_COSINES = 120  # uses whose similarity to each other is worth a matrix


def word_routes(served: Served) -> APIRouter:
    """Return the routes for uses of words."""
    router = APIRouter(route_class=StrictRoute, tags=["Words"])

    @router.post("/v1/neighbours", summary="The nearest uses of a word")
    async def neighbours(body: NeighboursRequest, request: Request) -> Response:
        work = partial(
            nearest_uses,
            served.model(body.model).for_single,
            body.input,  # a list, never a path
            body.word,
            query=body.query,
            k=body.k,
            layers=body.layers,
            any_word=body.any_word,
        )
        asked, found = await unless_gone(request, served.call(work, tokens=_cost(body.input)))
        return json_response({"query": asdict(asked), "data": list(map(asdict, found)), "model": body.model})

    @router.post("/v1/uses", summary="All uses of a word, by sense", responses=_USES_ANSWERS)
    async def uses(body: UsesRequest, request: Request, accept: str = Header("*/*")) -> Response:
        wanted = chosen_format(accept, (JSON, PARQUET))
        model = served.model(body.model)
        settings = {name: getattr(body, name) for name in ("split", "match_case", "most", "num_senses")}

        def work() -> bytes | dict[str, Any]:
            found = find_uses(model.for_single, body.input, body.word, **settings)
            return _as_parquet(found) if wanted == PARQUET else _as_json(found)

        answer = await unless_gone(request, served.call(work, tokens=_cost(body.input)))
        if isinstance(answer, bytes):
            return Response(answer, media_type=PARQUET)
        return json_response(answer | {"model": body.model})

    return router


def _cost(lines: list[str]) -> int:
    return sum(map(len, lines)) // 4


def _as_json(found: WordUses) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "word": found.word,
        "left_out": found.left_out,
        "senses": found.senses,
        "data": list(map(asdict, found.uses)),
        "places": np.ascontiguousarray(places(found.layers)),
    }
    if len(found) <= _MOST_COSINES:
        layers = range(len(found.layers))
        answer["cosines"] = np.stack([found.cosines(layer) for layer in layers])
    return answer


def _as_parquet(found: WordUses) -> bytes:
    """Return a table that embedding-atlas and data frames open: x and y are places at the top layer."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: [getattr(use, name) for use in found.uses] for name in vars(found.uses[0])}
    x, y = places(found.layers)[-1].T
    top = np.ascontiguousarray(found.layers[-1])
    vector = pa.FixedSizeListArray.from_arrays(pa.array(top.reshape(-1)), top.shape[1])
    sink = io.BytesIO()
    pq.write_table(pa.table(columns | {"x": x, "y": y, "vector": vector}), sink)
    return sink.getvalue()


def places(layers: Floats) -> Floats:
    """Return where each use stands on the map of each layer, (L+1, n, 2), within -1 to 1.

    The two axes of a layer are its principal components, turned and mirrored so that they fit the layer above
    best (orthogonal Procrustes): a use then moves from layer to layer only as far as its neighbours change.
    """
    maps = [plane(layer) for layer in layers]  # (n, 2) each
    for at in range(len(maps) - 2, -1, -1):
        left, _, right = np.linalg.svd(maps[at].T @ maps[at + 1])
        maps[at] = maps[at] @ (left @ right)
    reach = [max(float(np.abs(one).max()), 1e-6) for one in maps]
    scaled: Floats = np.stack([one / most for one, most in zip(maps, reach, strict=True)]).astype(np.float32)
    return scaled


_USES_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Each use with its sense, and its place on a map of each layer.",
        "content": {PARQUET: {"schema": {"type": "string", "format": "binary"}}},
    }
}
