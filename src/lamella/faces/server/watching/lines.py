"""Lines: one of the log for each request and each answer, as JSON in plain letters, which nothing breaks out of."""

import json
import logging
from collections.abc import Mapping

from starlette.types import Scope

from lamella.faces.server.watching.meters import ServerMeters

REQUESTS = logging.getLogger("lamella.requests")
ANSWERS = logging.getLogger("lamella.answers")
_LONGEST = 200
_DIGITS = 3


def log_request(scope: Scope, status: int, caller: str, *, seconds: float, meters: ServerMeters) -> None:
    """What a request came to. The path is that of the route: what people name things by is told for conversations."""
    route = getattr(scope.get("route"), "path", None)
    meters.note_request(route=route or "none", method=_plain_method(scope), status=status, seconds=seconds)
    told: dict[str, object] = {
        "at": "request",
        "method": _plain_method(scope),
        "route": route,
        "path": scope["path"][:_LONGEST],
        "status": status,
        "seconds": round(seconds, _DIGITS),
        "caller": caller,
        "client": (scope.get("client") or ("",))[0],
    }
    conversation = scope.get("path_params", {}).get("conversation")
    if isinstance(conversation, str):
        told["conversation"] = conversation[:_LONGEST]
    _write(REQUESTS, told)


def log_answer(told: Mapping[str, object], *, text: str, preview: bool) -> None:
    """What an answer came to: whose, how long, what it used; how it begins only where settings allow that."""
    shown = {"preview": text[:_LONGEST]} if preview else {}
    _write(ANSWERS, {"at": "answer", **told, "length": len(text), **shown})


def _write(logger: logging.Logger, told: Mapping[str, object]) -> None:
    logger.info("%s", json.dumps(told, ensure_ascii=True, default=str), extra={"told": told})


def _plain_method(scope: Scope) -> str:
    """The method, if it is one that there is: a label is made for each."""
    known = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
    return scope["method"] if scope["method"] in known else "other"
