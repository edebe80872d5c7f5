"""Failures at the doors: the one shape, with what clients of a provider's API look for besides."""

from typing import Any

OPENAI = ("/v1/chat/completions", "/v1/responses")
ANTHROPIC = ("/v1/messages",)
_SERVERS = 500
_ANTHROPIC_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}


def dress_error(path: str, status: int, body: dict[str, Any]) -> dict[str, Any]:
    """An error as it is told at an address: at a door with the fields that its clients read."""
    error = body["error"]
    if path in ANTHROPIC:
        usual = "invalid_request_error" if status < _SERVERS else "api_error"
        return {"type": "error", "error": {**error, "type": _ANTHROPIC_TYPES.get(status, usual)}}
    if path in OPENAI:
        kind = "invalid_request_error" if status < _SERVERS else "server_error"
        return {"error": {**error, "type": kind, "param": None}}
    return body
