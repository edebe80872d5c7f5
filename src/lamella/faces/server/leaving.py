"""Leaving: a client that waits for a whole answer may go away before it is there; then nobody follows that any more."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.requests import ClientDisconnect

_Given = TypeVar("_Given")
# Nobody hears it; it is what the line of the log says, as proxies say it.
_LEFT = 499


async def wait_with(request: Request, work: Coroutine[Any, Any, _Given]) -> _Given:
    """What a work comes to, which is left off when the client goes that waits for it.

    Frameworks tell of that only where something is sent meanwhile.
    """
    loop = asyncio.get_running_loop()
    working, leaving = loop.create_task(work), loop.create_task(_listen(request))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientDisconnect
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.wait((working, leaving))


def add_leaving(app: FastAPI) -> None:
    """Have nothing told to whoever has gone."""

    async def tell(_request: Request, _error: Exception) -> Response:
        return Response(status_code=_LEFT)

    app.add_exception_handler(ClientDisconnect, tell)


async def _listen(request: Request) -> None:
    """Until the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
