"""Bodies are read strictly: valid UTF-8, bounded depth, no NaN."""

import json
from typing import Any

from fastapi import Request
from fastapi.responses import Response
from fastapi.routing import APIRoute
from pydantic_core import from_json


class _StrictRequest(Request):
    """A request whose JSON has bounded depth, valid UTF-8 and no NaN."""

    async def json(self) -> Any:  # noqa: ANN401 (whatever JSON holds)
        try:
            return from_json(await self.body(), allow_inf_nan=False)
        except ValueError as error:
            raise json.JSONDecodeError(str(error), "", 0) from None


class StrictRoute(APIRoute):
    """A route that reads its body as a `_StrictRequest`."""

    def get_route_handler(self) -> Any:  # noqa: ANN401 (a coroutine function)
        """Return what handles a request."""
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            return await handle(_StrictRequest(request.scope, request.receive))

        return strictly
