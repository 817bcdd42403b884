"""Models, tasks and the page over HTTP."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from elmokit.errors import MissingExtra
from elmokit.serving.serve_settings import ServeSettings

if TYPE_CHECKING:
    from starlette.types import ASGIApp

__all__ = ["ServeSettings", "make_app", "serve"]


def serve(**settings: Any) -> None:  # noqa: ANN401 (checked by ServeSettings)
    """Serve models and tasks over HTTP until SIGTERM or Ctrl-C.

    Args:
        **settings: Fields of `ServeSettings`, such as `models=("en", "zh")` or `port=8080`.

    Raises:
        MissingExtra: FastAPI is not installed.
        ElmoError: A setting is invalid, or something cannot be loaded.
    """
    _require_extra()
    from elmokit.serving.server import run_server

    run_server(ServeSettings(**settings))


def make_app(settings: ServeSettings) -> "ASGIApp":
    """Return the ASGI application, for other servers than uvicorn.

    Raises:
        MissingExtra: FastAPI is not installed.
        ElmoError: Something cannot be loaded.
    """
    _require_extra()
    from elmokit.serving import app

    return app.make_app(settings)


def _require_extra() -> None:
    for library in ("fastapi", "uvicorn", "prometheus_client", "orjson"):
        if find_spec(library) is None:
            raise MissingExtra(library, "serve", "serving over HTTP")
