"""Run the server: listen, say what is served and where, stop in good order."""

import contextlib
import dataclasses
import json
import logging
import os
import sys
import time
import urllib.request
import webbrowser
from collections.abc import Sequence
from threading import Thread
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from elmokit.base import settings_from_dict, temporary_folder
from elmokit.serving.app import make_app
from elmokit.serving.gate import JSONLines, PlainLines
from elmokit.serving.serve_settings import ServeSettings, named

# How settings come to worker processes.
_SETTINGS = "ELMOKIT_SERVE_SETTINGS"


def run_server(settings: ServeSettings) -> None:
    """Serve until SIGTERM or Ctrl-C, then finish what is running and return."""
    _log_to_stderr()
    if settings.open_page:
        Thread(target=_open_page, args=(settings.address,), daemon=True).start()
    options: dict[str, Any] = {
        "host": settings.host,
        "port": settings.port,
        "log_config": None,
        "access_log": False,  # the gate logs each request
        "timeout_graceful_shutdown": int(settings.grace_seconds),
        "server_header": False,
        "date_header": False,
        "ws": "none",
    }
    if settings.workers == 1:
        app = make_app(settings)
        _say(settings)
        uvicorn.run(app, **options)
        return
    os.environ[_SETTINGS] = json.dumps(dataclasses.asdict(settings))
    with temporary_folder() as folder:  # where the processes add up their statistics
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
        _say(settings)
        name = f"{__name__}:{app_of_worker.__name__}"
        uvicorn.run(name, factory=True, workers=settings.workers, **options)


def app_of_worker() -> ASGIApp:
    """Make the application in a worker process."""
    import torch

    _log_to_stderr()
    values = json.loads(os.environ[_SETTINGS])
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    settings = settings_from_dict(ServeSettings, values | lists, "settings")
    torch.set_num_threads(max(1, torch.get_num_threads() // settings.workers))
    return make_app(settings)


def _open_page(address: str) -> None:
    """Open the page when the server answers."""
    while True:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{address}/ready").close()
            webbrowser.open(address)
            return
        time.sleep(0.2)


def _log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(PlainLines() if sys.stderr.isatty() else JSONLines())
    for name in ("elmokit", "uvicorn.error"):
        own = logging.getLogger(name)
        own.handlers, own.propagate = [handler], False
        own.setLevel(logging.INFO)


def _say(settings: ServeSettings) -> None:
    logging.getLogger(__name__).info(
        "serving",
        extra={
            "fields": {
                "address": settings.address,
                "documentation": f"{settings.address}/docs",
                "models": _names(settings.models),
                "tasks": _names(settings.tasks),
                "indexes": _names(settings.indexes),
                "key": settings.api_key is not None,
            }
        },
    )


def _names(specs: Sequence[str]) -> list[str]:
    return list(named(tuple(specs)))
