"""The language model and the tasks: `/v1/score`, `/v1/fill`, `/v1/generate`, `/v1/predict/{task}`."""

from functools import partial

import torch
from fastapi import APIRouter, Path, Request
from fastapi.responses import Response

from elmokit.errors import ConfigError
from elmokit.language_model import MASK
from elmokit.serving.answers import unless_gone
from elmokit.serving.problems import json_response
from elmokit.serving.request_types import (
    MOST_GAPS,
    FillRequest,
    GenerateRequest,
    PredictRequest,
    ScoreRequest,
)
from elmokit.serving.served import Served
from elmokit.serving.strict_json import StrictRoute

# What a step costs beside embedding a token, most of it in the softmax.
_TOKENS_OF_A_GAP, _TOKENS_OF_A_WORD = 100, 100


def language_routes(served: Served) -> APIRouter:
    """Return the routes of language models and tasks."""
    router = APIRouter(route_class=StrictRoute)
    _add_reading(router, served)
    _add_writing(router, served)
    return router


def _add_reading(router: APIRouter, served: Served) -> None:
    @router.post("/v1/score", summary="How likely each word is", tags=["Language model"])
    async def score(body: ScoreRequest, request: Request) -> Response:
        model = served.model(body.model)
        assert model.require_lm
        prepared = await model.prepare(body.input)
        found = await unless_gone(request, model.score(prepared))
        data = [
            one.to_dict() | {"text": given.text, "offsets": given.offsets, "surprises": one.surprises}
            for one, given in zip(found, prepared, strict=True)
        ]
        return json_response({"object": "list", "data": data, "model": body.model})

    @router.post("/v1/fill", summary="Words for the gaps of a sentence", tags=["Language model"])
    async def fill(body: FillRequest, request: Request) -> Response:
        model = served.model(body.model)
        gaps = body.input.count(MASK)
        if gaps > MOST_GAPS:
            raise ConfigError(f"expected at most {MOST_GAPS} {MASK} in the sentence, found {gaps}")
        await model.prepare([body.input])  # checks its length
        work = partial(model.require_lm.fill, body.input, top=body.top, by=body.by)
        cost = gaps * (_TOKENS_OF_A_GAP + len(body.input) // 4)
        found = await unless_gone(request, served.call(work, tokens=cost))
        data = [[candidate.to_dict() for candidate in gap] for gap in found]
        return json_response({"object": "list", "data": data, "model": body.model})


def _add_writing(router: APIRouter, served: Served) -> None:
    @router.post("/v1/generate", summary="A sentence that goes on", tags=["Language model"])
    async def generate(body: GenerateRequest, request: Request) -> Response:
        model = served.model(body.model)
        language_model = model.require_lm
        (prompt,) = await model.prepare([body.prompt])
        generator = torch.Generator()
        seed = generator.seed() % 2**53 if body.seed is None else body.seed
        work = partial(
            language_model.generate,
            prompt.words,
            generator=generator.manual_seed(seed),
            temperature=body.temperature,
            top_p=body.top_p,
            max_tokens=body.max_tokens,
        )
        cost = body.max_tokens * _TOKENS_OF_A_WORD
        tokens = await unless_gone(request, served.call(work, tokens=cost))
        separator = "" if language_model.language in ("zh", "ja") else " "
        answer = {"text": separator.join(tokens), "tokens": tokens, "prompt_tokens": len(prompt.words)}
        return json_response(answer | {"model": body.model, "seed": seed})

    @router.post("/v1/predict/{task}", summary="The labels of texts", tags=["Tasks"])
    async def predict(
        body: PredictRequest, request: Request, task: str = Path(description="Name of a served task.")
    ) -> Response:
        found = await unless_gone(request, served.task(task).predict(body.input))
        return json_response({"object": "list", "data": [one.to_dict() for one in found], "task": task})
