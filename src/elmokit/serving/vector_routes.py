"""`/v1/embeddings` as OpenAI's API has it, and `/v1/tokens`: the vectors of each word."""

from collections.abc import Callable
from typing import Any

import numpy as np
from fastapi import APIRouter, Header, Request
from fastapi.responses import Response

from elmokit.embed import Floats, Pooler, PreparedText, Sentence, layer_index
from elmokit.errors import ConfigError
from elmokit.serving import answers
from elmokit.serving.problems import Problem, json_response, too_large
from elmokit.serving.request_types import EmbeddingsRequest, Mix, TokensRequest
from elmokit.serving.served import Served, ServedModel
from elmokit.serving.strict_json import StrictRoute
from elmokit.vectors import Row

_FORMATS = (answers.JSON, answers.ARROW, answers.SAFETENSORS)


def vector_routes(served: Served) -> APIRouter:
    """Return the routes that give vectors."""
    router = APIRouter(route_class=StrictRoute, tags=["Vectors"])
    _add_embeddings(router, served)
    _add_tokens(router, served)
    return router


def _add_embeddings(router: APIRouter, served: Served) -> None:
    @router.post("/v1/embeddings", summary="Vectors of texts, as OpenAI's API has it")
    async def embeddings(body: EmbeddingsRequest, request: Request) -> Response:
        model = served.model(body.model)
        pool = _pooler(body, model)
        prepared = await model.prepare(body.input)

        def pooled(sentence: Sentence) -> Any:  # noqa: ANN401 (what JSON holds)
            return answers.numbers(pool(sentence), body.encoding_format)

        found = await answers.unless_gone(request, model.embed(prepared, pooled))
        data = [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(found)]
        return json_response({"object": "list", "data": data, "model": body.model, "usage": _usage(prepared)})


def _add_tokens(router: APIRouter, served: Served) -> None:
    @router.post("/v1/tokens", summary="Vectors of each word, at chosen layers", responses=_TOKENS_ANSWERS)
    async def tokens(body: TokensRequest, request: Request, accept: str = Header("*/*")) -> Response:
        wanted = answers.chosen_format(accept, _FORMATS)
        model = served.model(body.model)
        select, layers = _selection(body, model)
        prepared = await model.prepare(body.input)
        _check_result(prepared, model, layers, wanted, served.settings.max_result_bytes)
        found = await answers.unless_gone(request, model.embed(prepared, lambda s: (s, select(s))))
        rows = [Row(text=s.text, tokens=s.tokens, offsets=s.offsets, vectors=v) for s, v in found]
        if wanted == answers.ARROW:
            return answers.token_vectors_as_arrow(rows, layers, body.model)
        if wanted == answers.SAFETENSORS:
            return answers.token_vectors_as_safetensors(rows, layers, body.model)
        data = [
            {
                "index": number,
                "tokens": sentence.tokens,
                "offsets": sentence.offsets,
                "truncated": sentence.truncated,
                "unknown": sentence.unknown,
                "shape": vectors.shape,
                "vectors": answers.numbers(vectors, body.encoding_format),
            }
            for number, (sentence, vectors) in enumerate(found)
        ]
        return json_response(
            {"object": "list", "data": data, "model": body.model, "layers": layers, "usage": _usage(prepared)}
        )


def _usage(prepared: list[PreparedText]) -> dict[str, int]:
    tokens = sum(len(one.words) for one in prepared)
    return {"prompt_tokens": tokens, "total_tokens": tokens}


def _pooler(body: EmbeddingsRequest, model: ServedModel) -> Pooler:
    """Return what makes the vector of a text."""
    if body.dimensions is not None:
        try:
            return Pooler.of(model.embedder, body.pooling, body.layers, body.dimensions)
        except ConfigError as error:
            raise Problem(400, f"dimensions: {error}", param="dimensions", code="invalid_value") from None
    pool = Pooler.of(model.embedder, body.pooling, body.layers)
    if len(pool.shape) > 1:
        raise ConfigError(f"a text gets one vector, of one layer, found layers={body.layers!r}")
    return pool


def _selection(
    body: TokensRequest, model: ServedModel
) -> tuple[Callable[[Sentence], Floats], list[int] | None]:
    """Return what chooses the vectors of a sentence, and the numbers of the layers if there are several."""
    index = layer_index(body.layers, model.embedder.num_layers)
    if body.mix is not None:
        if body.layers != "mix":
            raise ConfigError(f"mix has no effect with layers={body.layers!r}; leave out one of them")
        return _mix(body.mix, model.embedder.num_layers), None
    several = index if isinstance(index, list) and body.layers not in ("average", "mix") else None
    return lambda sentence: sentence.select(body.layers).copy(), several


def _mix(mix: Mix, num_layers: int) -> Callable[[Sentence], Floats]:
    if len(mix.weights) != num_layers:
        raise ConfigError(f"the model has {num_layers} layers, found {len(mix.weights)} weights of a mix")
    w = np.asarray(mix.weights, np.float64)
    shares = np.exp(w - w.max())
    shares = (mix.gamma * shares / shares.sum()).astype(np.float32)  # (L+1,)
    return lambda sentence: np.einsum("l,ltd->td", shares, sentence.layers)


def _check_result(
    prepared: list[PreparedText], model: ServedModel, layers: list[int] | None, wanted: str, most: int
) -> None:
    count = sum(len(one.words) for one in prepared) * model.embedder.dim * len(layers or [0])
    if count * answers.BYTES_OF_A_FLOAT[wanted] > most:
        raise too_large(
            f"the answer would have {count} numbers, more than fit into the {most} bytes that are allowed; "
            "send fewer texts, ask for fewer layers, or accept Arrow or safetensors",
            "input",
        )


_TOKENS_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Tokens, offsets and vectors of each text.",
        "content": {
            answers.ARROW: {"schema": {"type": "string", "format": "binary"}},
            answers.SAFETENSORS: {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
