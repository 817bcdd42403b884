"""Search and uses of words: `/v1/search/{index}`, `/v1/neighbours` and `/v1/uses`.

Indexes are opened when the server starts; other texts come with the request. No request names a file.
"""

import io
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
from fastapi import APIRouter, Header, Path, Request
from fastapi.responses import Response

from elmokit.embed import Floats
from elmokit.search import WordUses, find_uses, nearest_uses, plane
from elmokit.serving.answers import JSON, chosen_format, unless_gone
from elmokit.serving.problems import json_response, too_large
from elmokit.serving.request_types import NeighboursRequest, SearchRequest, UsesRequest
from elmokit.serving.served import Served
from elmokit.serving.strict_json import StrictRoute
from elmokit.text import may_contain

PARQUET = "application/vnd.apache.parquet"
_MOST_COSINES = 120  # uses whose similarity to each other is worth a matrix
_BYTES_OF_A_TOKEN = 4  # of UTF-8, about: an English word is longer, a Chinese character shorter
_SEARCH_TOKENS = 100  # what a search costs, in tokens that are embedded


def word_routes(served: Served) -> APIRouter:
    """Return the routes for search and for uses of words."""
    router = APIRouter(route_class=StrictRoute)
    _add_search(router, served)
    _add_uses(router, served)
    return router


def _add_search(router: APIRouter, served: Served) -> None:
    @router.post("/v1/search/{index}", summary="Documents that answer a query", tags=["Search"])
    async def search(
        body: SearchRequest, request: Request, index: str = Path(description="Name of a served index.")
    ) -> Response:
        settings = body.model_dump()
        work = partial(served.index(index).search, settings.pop("query"), **settings)
        found = await unless_gone(request, served.call(work, tokens=_SEARCH_TOKENS))
        return json_response({"object": "list", "data": list(map(asdict, found)), "index": index})


def _add_uses(router: APIRouter, served: Served) -> None:
    @router.post("/v1/neighbours", summary="The nearest uses of a word", tags=["Words"])
    async def neighbours(body: NeighboursRequest, request: Request) -> Response:
        cost = _cost(body.input, None if body.any_word else body.word, served)
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
        asked, found = await unless_gone(request, served.call(work, tokens=cost))
        return json_response({"query": asdict(asked), "data": list(map(asdict, found)), "model": body.model})

    @router.post("/v1/uses", summary="All uses of a word, by sense", tags=["Words"], responses=_USES_ANSWERS)
    async def uses(body: UsesRequest, request: Request, accept: str = Header("*/*")) -> Response:
        wanted = chosen_format(accept, (JSON, PARQUET))
        model = served.model(body.model)
        cost = _cost(body.input, body.word, served)
        settings = {name: getattr(body, name) for name in ("split", "match_case", "most", "num_senses")}

        def work() -> bytes | dict[str, Any]:
            found = find_uses(model.for_single, body.input, body.word, **settings)
            return _as_parquet(found) if wanted == PARQUET else _as_json(found)

        answer = await unless_gone(request, served.call(work, tokens=cost))
        if isinstance(answer, bytes):
            return Response(answer, media_type=PARQUET)
        return json_response(answer | {"model": body.model})


def _cost(lines: list[str], word: str | None, served: Served) -> int:
    """Return about how many tokens the lines that may have the word consist of.

    Raises:
        Problem: They are more than those of a request.
    """
    read = (line for line in lines if word is None or may_contain(line, word))
    tokens = sum(len(line.encode()) for line in read) // _BYTES_OF_A_TOKEN
    most = served.settings.max_tokens
    if tokens > most:
        raise too_large(f"about {tokens} tokens are more than the {most} of a request", "input")
    return tokens


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
