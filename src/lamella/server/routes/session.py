"""Routes for the session of a browser: log in with an access token, log out, and see who is logged in."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from lamella.errors import NotAuthenticatedError
from lamella.schemas.session import SessionJson
from lamella.server.openapi import describe_response, json_response, make_router
from lamella.server.sessions import Session, session_cookie_headers
from lamella.server.state import Caller, ServerState, StateDep

router = make_router(prefix="/v1/session", tag="session")


class LoginBody(BaseModel):
    """An access token."""

    model_config = ConfigDict(extra="forbid")

    token: Annotated[str, Field(min_length=1, max_length=500, examples=["lamella_…"])]


@router.get("", summary="Who is logged in")
async def read_session(*, request: Request, state: StateDep) -> SessionJson:
    """Return whether a login is needed, and who is logged in; this needs no token."""
    caller: Caller | None = request.scope["lamella.caller"]
    return _session_to_json(state, caller, state.sessions.find_session(request.headers, state.tokens))


@router.post("", summary="Log in", response_class=Response, responses=describe_response(SessionJson))
def log_in(*, request: Request, body: LoginBody, state: StateDep) -> Response:
    """Trade an access token for a cookie that scripts cannot read. Where no login is needed, nothing changes."""
    if not state.needs_token:
        return json_response(_session_to_json(state, request.scope["lamella.caller"], None))
    token = state.tokens.find_by_token(body.token.strip())
    if token is None:
        raise NotAuthenticatedError(
            "Invalid access token.", hint="Whoever runs the server creates tokens with `lamella tokens add`."
        )
    session, cookie = state.sessions.create_session(token)
    caller = Caller(name=token.name, owner=token.owner, scope=token.scope)
    return _set_session_cookie(request, json_response(_session_to_json(state, caller, session)), cookie)


@router.delete("", summary="Log out", response_class=Response, responses=describe_response(SessionJson))
def log_out(*, request: Request, state: StateDep) -> Response:
    """End the session of this browser, and remove its cookie."""
    session = state.sessions.find_session(request.headers, state.tokens)
    if session is not None:
        state.sessions.end_session(session)
    caller: Caller | None = None if state.needs_token else request.scope["lamella.caller"]
    return _set_session_cookie(request, json_response(_session_to_json(state, caller, None)), "")


def _set_session_cookie(request: Request, response: Response, value: str) -> Response:
    for header in session_cookie_headers(request.headers, value):
        response.headers.append("Set-Cookie", header)
    return response


def _session_to_json(state: ServerState, caller: Caller | None, session: Session | None) -> SessionJson:
    expires = None if session is None or not state.needs_token else datetime.fromtimestamp(session.expires, UTC)
    return SessionJson(
        needed=state.needs_token,
        active=caller is not None,
        name=caller.name or None if caller else None,
        owner=None if caller is None else caller.owner,
        scope=None if caller is None else caller.scope.value,
        expires=None if expires is None else expires.isoformat().replace("+00:00", "Z"),
    )
