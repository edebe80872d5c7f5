"""The route for live updates."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec
from fastapi import Request
from fastapi.responses import Response
from fastapi.sse import format_sse_event

from lamella.ports import ConversationListItem
from lamella.schemas.body import JsonBody
from lamella.schemas.changes import IndexingEventJson, ReadyEventJson, change_to_json
from lamella.server.live import IndexProgress, LiveChange
from lamella.server.openapi import CHANGE_STREAM_DOCS, make_router
from lamella.server.security import is_still_authenticated
from lamella.server.state import Caller, ReadCaller, ServerState, StateDep
from lamella.server.turns import SseResponse

router = make_router(prefix="/v1/events", tag="events")


@router.get(
    "",
    summary="Changes as they happen",
    response_class=Response,
    responses={200: {"content": CHANGE_STREAM_DOCS, "description": "Events."}},
)
async def stream_changes(*, request: Request, state: StateDep, caller: ReadCaller) -> Response:
    """Report changes of the caller's conversations as events, by whichever tab, program or process.

    `ready` comes first, and again if changes were lost: read again what is shown. Changes that another process makes
    arrive within about a second. Nothing is repeated after a lost connection; the new one begins with `ready`.
    """
    # A stream that stays open would hold up the server when it stops.
    request.scope["lamella.on_shutdown"] = state.hub.close
    return SseResponse(_stream_changes(request, state, caller))


def _live_change_to_json(change: LiveChange) -> tuple[str, JsonBody]:
    match change:
        case None:
            return "ready", ReadyEventJson()
        case IndexProgress(done, total):
            return "indexing", IndexingEventJson(done=done, total=total)
    return change_to_json(change)


async def _stream_changes(request: Request, state: ServerState, caller: Caller) -> AsyncGenerator[bytes, None]:
    def find_own(listed: ConversationListItem) -> ConversationListItem | None:
        return state.engine_pool.to_owner_view(caller.owner, listed)

    async with aclosing(state.hub.listen(find_own)) as changes:
        async for change in changes:
            if not is_still_authenticated(request.headers, state):
                return
            name, body = _live_change_to_json(change)
            yield format_sse_event(data_str=msgspec.json.encode(body).decode(), event=name)
