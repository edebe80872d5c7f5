"""Callers: whose token a request shows, and what becomes of one that shows none."""

from starlette.datastructures import Headers

from lamella.faces.server.state import OPERATOR, Caller, ServerState
from lamella.refusals import TokenMissingError
from lamella.settings.tokens import PREFIX

_ASK = "Send it as `Authorization: Bearer …`; whoever runs the server gives tokens out with `lamella tokens add`."


def find_token(headers: Headers) -> str | None:
    """What a request shows as its key, in either of the ways that clients have."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and given.strip():
        return given.strip()
    return headers.get("x-api-key")


def find_caller(headers: Headers, state: ServerState) -> Caller:
    """Who calls. Where no token is needed, a key that is none of ours is what a client sends that must send some."""
    token = find_token(headers)
    if token is not None and (state.needs_token or token.startswith(PREFIX)):
        kept = state.tokens.find(token)
        if kept is None:
            raise TokenMissingError("Nobody knows this token.", hint=_ASK)
        return Caller(name=kept.name, owner=kept.owner, scope=kept.scope)
    if state.needs_token:
        raise TokenMissingError("A token is needed here.", hint=_ASK)
    return OPERATOR
