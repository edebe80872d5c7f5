"""Streams: the events of an answer as server-sent events, and as one body for who wants to wait."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing

from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse, format_sse_event
from starlette.types import Send

from lamella.engine.runs.place import TellingEvent
from lamella.faces.server.bodies.answers import EVENTS
from lamella.faces.server.failures import tell_error
from lamella.views.serving.streams import view_event

# After so many seconds in which nothing is said something is, so that nobody between takes the line for dead.
_QUIET = 15.0
# How soon a browser that lost its connection asks again, in milliseconds.
_AGAIN = 1_000
_TEXT = {"type": "string"}
_FIELDS = {"id": _TEXT, "retry": {"type": "integer", "minimum": 0}}


def _describe_event(name: str, body: str) -> dict[str, object]:
    data = {"contentMediaType": "application/json", "contentSchema": {"$ref": f"#/components/schemas/{body}"}}
    return {
        "type": "object",
        "title": name,
        "required": ["event", "data"],
        "properties": {**_FIELDS, "event": {"const": name}, "data": {**_TEXT, **data}},
    }


# Events as OpenAPI describes streams of them: parts of another API's stream, and those of an answer by their names.
CHUNKS: dict[str, object] = {
    "text/event-stream": {"itemSchema": {"type": "object", "properties": {**_FIELDS, "event": _TEXT, "data": _TEXT}}}
}
STREAM: dict[str, object] = {
    "text/event-stream": {
        "itemSchema": {"oneOf": [_describe_event(name, body.__name__) for name, body in EVENTS.items()]}
    }
}


class SseResponse(EventSourceResponse):
    """Server-sent events; whoever makes them is told when nobody reads them any more."""

    def __init__(self, parts: AsyncGenerator[bytes, None]) -> None:
        self._parts = parts
        super().__init__(parts, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})

    async def stream_response(self, send: Send) -> None:
        loop = asyncio.get_running_loop()
        said = loop.time()
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})

        async def keep_alive() -> None:
            while True:
                await asyncio.sleep(_QUIET)
                if loop.time() - said >= _QUIET:
                    await send({"type": "http.response.body", "body": KEEPALIVE_COMMENT, "more_body": True})

        # Beside the parts, not around them: what waits for each part anew takes as long as making it.
        alive = loop.create_task(keep_alive())
        try:
            async for part in self._parts:
                said = loop.time()
                await send({"type": "http.response.body", "body": part, "more_body": True})
        finally:
            alive.cancel()
            await self._parts.aclose()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def stream_events(
    events: AsyncGenerator[TellingEvent, None], finish: Callable[[], Mapping[str, object]]
) -> AsyncGenerator[bytes, None]:
    """Each event with its id; an error is the last one. The end has what ``finish`` says besides."""
    first = True
    async with aclosing(events):
        try:
            async for place, event in events:
                body = view_event(event)
                if event.kind == "done":
                    body = {**body, **finish()}
                yield format_sse_event(
                    data_str=_write(body), event=event.kind, id=place.write(), retry=_AGAIN if first else None
                )
                first = False
        except Exception as error:  # noqa: BLE001 - the stream has begun: its last event says what went wrong
            yield format_sse_event(data_str=_write(tell_error(error)[1]), event="error")


def _write(body: Mapping[str, object]) -> str:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))
