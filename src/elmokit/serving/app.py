"""The application: all routes, the page, and what surrounds them."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from elmokit import __version__
from elmokit.embed import Pooler
from elmokit.errors import ElmoError
from elmokit.serving.batching import QueueFull
from elmokit.serving.gate import Gate, internal_error
from elmokit.serving.language_routes import language_routes
from elmokit.serving.problems import Problem, invalid, json_response
from elmokit.serving.serve_settings import ServeSettings
from elmokit.serving.served import Served
from elmokit.serving.vector_routes import vector_routes
from elmokit.serving.word_routes import word_routes

_PROBLEMS = {
    "400": "The request does not make sense; the message says why.",
    "401": "The API key is missing or wrong.",
    "404": "There is no such model, task or index.",
    "406": "The answer cannot be given in the format that Accept asks for.",
    "413": "The request is over a limit, which the message names.",
    "429": "Too much is waiting; Retry-After says when to come back.",
}

_MEDIA_TYPES = {
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}


def make_app(settings: ServeSettings) -> ASGIApp:
    """Load what is to be served and return the ASGI application.

    Raises:
        ElmoError: Something cannot be loaded.
    """
    served = Served(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        served.threads.close()

    app = FastAPI(
        title="elmokit",
        version=__version__,
        summary="Vectors of words in their context, and what can be done with them.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    for router in (vector_routes(served), language_routes(served), word_routes(served)):
        app.include_router(router)
    _add_status(app, served)
    _add_page(app)
    _add_problems(app)
    app.openapi = lambda: _schema(app, settings)  # type: ignore[method-assign]
    gate: ASGIApp = Gate(app, settings, served.metrics.request)
    if not settings.cors_origins:
        return gate
    return CORSMiddleware(  # outside of the gate: a browser asks first, without the key, whether it may ask
        gate,
        allow_origins=list(settings.cors_origins),
        allow_methods=["GET", "POST"],
        allow_headers=["authorization", "content-type", "x-request-id"],
        expose_headers=["retry-after", "x-request-id"],
    )


def _add_status(app: FastAPI, served: Served) -> None:
    started = int(time.time())

    @app.get("/v1/models", summary="What is served", tags=["Server"])
    async def models() -> Response:
        found: list[dict[str, Any]] = []
        for name, model in served.models.items():
            about = model.embedder
            found.append(
                {
                    **{"id": name, "object": "model", "created": started, "owned_by": "elmokit"},
                    **{"layers": about.num_layers, "dim": about.dim, "precision": about.precision},
                    "embedding_dim": Pooler.of(about, None, None).shape[0],
                    "language": about.tokenizer_spec.language,
                    "language_model": model.language_model is not None,
                }
            )
        tasks = [
            {"id": name, "task": task.kind, "language": task.model.tokenizer.language}
            for name, task in served.tasks.items()
        ]
        indexes = [{"id": name, "documents": len(index)} for name, index in served.indexes.items()]
        return json_response({"object": "list", "data": found, "tasks": tasks, "indexes": indexes})

    @app.get("/health", summary="The process is alive", tags=["Server"])
    @app.get("/ready", summary="All models are loaded", tags=["Server"])
    async def health() -> Response:  # nothing listens before everything is loaded
        return json_response({"status": "ok"})

    @app.get("/metrics", summary="Statistics for Prometheus", tags=["Server"])
    async def metrics() -> Response:
        text, media_type = served.metrics.text()
        return Response(text, media_type=media_type)


def _add_page(app: FastAPI) -> None:
    """Serve the page from memory: no path of a request reaches the file system."""
    found = {file.name: file.read_bytes() for file in (files("elmokit.serving") / "page").iterdir()}
    found |= {"": found["index.html"], "docs": found["docs.html"]}

    @app.get("/{name:path}", include_in_schema=False)
    async def page(name: str) -> Response:
        if name not in found:
            raise HTTPException(404)
        media_type = _MEDIA_TYPES.get(name.rpartition(".")[2], "text/html; charset=utf-8")
        return Response(found[name], media_type=media_type, headers={"cache-control": "no-cache"})


def _add_problems(app: FastAPI) -> None:
    """Answer every error in one shape."""

    @app.exception_handler(Problem)
    async def problem(request: Request, error: Problem) -> Response:
        return error.response()

    @app.exception_handler(RequestValidationError)
    async def not_valid(request: Request, error: RequestValidationError) -> Response:
        return invalid(error.errors()).response()

    @app.exception_handler(QueueFull)
    async def full(request: Request, error: QueueFull) -> Response:
        headers = {"retry-after": str(error.retry_after)}
        return Problem(429, str(error), code="queue_full", headers=headers).response()

    @app.exception_handler(ElmoError)
    async def refused(request: Request, error: ElmoError) -> Response:
        return Problem(400, str(error), code="invalid_value").response()

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        message = f"{error.detail}: {request.method} {request.url.path[:100]}"
        return Problem(error.status_code, message, headers=error.headers).response()

    @app.exception_handler(Exception)
    async def fault(request: Request, error: Exception) -> Response:
        return internal_error(request.scope["request_id"]).response()


def _schema(app: FastAPI, settings: ServeSettings) -> dict[str, Any]:
    """Return the OpenAPI schema, with the errors as they are and not as FastAPI would make them."""
    if app.openapi_schema:
        return app.openapi_schema
    schema = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
    error = {
        "type": "object",
        "properties": {
            "error": {
                "type": "object",
                "properties": {
                    "message": {"type": "string"},
                    "type": {"type": "string"},
                    "param": {"type": ["string", "null"]},
                    "code": {"type": ["string", "null"]},
                },
            }
        },
    }
    for name in ("HTTPValidationError", "ValidationError"):
        schema["components"]["schemas"].pop(name, None)
    schema["components"]["schemas"]["Error"] = error
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    for path, methods in schema["paths"].items():
        for operation in methods.values():
            operation["responses"].pop("422", None)
            if path.startswith("/v1/"):
                described = {
                    status: {"description": what, "content": content} for status, what in _PROBLEMS.items()
                }
                operation["responses"] |= described
    if settings.api_key is not None:
        schema["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{"key": []}]
    app.openapi_schema = schema
    return schema
