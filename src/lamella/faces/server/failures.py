"""How a failure is told over HTTP: one shape for everything, with the status that fits."""

import json
import logging
from collections.abc import Mapping

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from lamella import refusals
from lamella.errors import (
    AnswerAsideError,
    BadInputError,
    BudgetExceededError,
    ConflictError,
    DivergedError,
    ErasedError,
    IndexUnavailableError,
    KeyRefusedError,
    LamellaError,
    OverloadedError,
    ProviderError,
    ProviderRefusedError,
    ProviderTimeoutError,
    RateLimitedError,
    SourceMissingError,
    SourceTooLargeError,
    StoreUnavailableError,
    UntrustedError,
)
from lamella.faces.server.door import HTTP
from lamella.faces.server.doors.failures import dress_error
from lamella.views.errors import view_error
from lamella.wiring import mask_keys

LOGGER = logging.getLogger("lamella.server")
# The first that fits counts: children before their parents.
_STATUSES: tuple[tuple[type[LamellaError], int], ...] = (
    (refusals.TokenMissingError, 401),
    (refusals.ScopeMissingError, 403),
    (refusals.OriginRefusedError, 403),
    (refusals.NotFoundError, 404),
    (refusals.NameTakenError, 409),
    (refusals.RunUnderwayError, 409),
    (refusals.RequestTooLargeError, 413),
    (refusals.RequestRefusedError, 415),
    (refusals.RequestSlowError, 408),
    (refusals.TooManyRequestsError, 429),
    (refusals.ServerStoppingError, 503),
    (UntrustedError, 403),
    (SourceMissingError, 404),
    (SourceTooLargeError, 413),
    (DivergedError, 409),
    (KeyRefusedError, 502),
    (ProviderRefusedError, 502),
    (BadInputError, 400),
    (ConflictError, 409),
    (AnswerAsideError, 409),
    (ErasedError, 410),
    (StoreUnavailableError, 503),
    (RateLimitedError, 429),
    (OverloadedError, 503),
    (ProviderTimeoutError, 504),
    (ProviderError, 502),
    (IndexUnavailableError, 503),
    (BudgetExceededError, 413),
)
_UNEXPECTED = 500
_TELLS = 300


def find_status(error: LamellaError) -> int:
    """The status that fits an error."""
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), _UNEXPECTED)


def tell_error(error: BaseException, path: str = "") -> tuple[int, dict[str, object]]:
    """An error with its status, in the one shape; at a door with what its clients look for besides."""
    known = explain(error)
    body = view_error(known, message=mask_keys(known.message), hint=known.hint_at(HTTP))
    status = find_status(known)
    told = body["error"]
    assert isinstance(told, dict)
    if isinstance(known, refusals.RunUnderwayError):
        told["running"] = {"conversation": known.conversation, "message": known.question, "since": known.since}
    return status, dress_error(path, status, body)


def explain(error: BaseException) -> LamellaError:
    """The same error if it is one of ours; what nobody expected is told without what it holds, and logged with it."""
    if isinstance(error, LamellaError):
        return error
    if isinstance(error, RecursionError | MemoryError):
        return refusals.RequestTooLargeError("This is nested too deep, or too large.", hint="Send less at once.")
    LOGGER.error("unexpected %s", json.dumps(type(error).__name__), exc_info=error)
    return LamellaError(
        f"Something unexpected went wrong: {type(error).__name__}.",
        hint="This is a bug in Lamella. The log of the server has more; please report it.",
    )


def list_headers(error: BaseException) -> dict[str, str]:
    """What an error says in headers: how to show a token, and when to come again."""
    if isinstance(error, refusals.TokenMissingError):
        return {"WWW-Authenticate": "Bearer"}
    wait = getattr(error, "wait", None)
    return {"Retry-After": str(max(1, round(wait)))} if isinstance(wait, int | float) else {}


def add_handlers(app: FastAPI) -> None:
    """Have every failure told in the one shape."""

    async def tell(request: Request, error: Exception) -> JSONResponse:
        return _respond(error, request)

    async def tell_invalid(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return _respond(_explain_invalid(error), request, status=422)

    async def tell_plain(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        return _respond(_explain_plain(error), request, status=error.status_code, headers=error.headers)

    app.add_exception_handler(LamellaError, tell)
    app.add_exception_handler(RequestValidationError, tell_invalid)
    app.add_exception_handler(HTTPException, tell_plain)
    app.add_exception_handler(Exception, tell)


def _respond(
    error: BaseException, request: Request, *, status: int | None = None, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    found, body = tell_error(error, request.url.path)
    return JSONResponse(body, status or found, headers={**list_headers(error), **(headers or {})})


def _explain_invalid(error: RequestValidationError) -> LamellaError:
    """What is wrong with a request, place by place, without what stands there."""
    wrong = [f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in error.errors()[:8]]
    told = "; ".join(wrong)[:_TELLS]
    return BadInputError(f"The request is not as it should be: {told}.", hint="GET /openapi.json has what is taken.")


def _explain_plain(error: HTTPException) -> LamellaError:
    if error.status_code == 404:
        return refusals.NotFoundError("There is nothing at this address.", hint="GET /openapi.json has what there is.")
    if error.status_code == 405:
        return BadInputError("This method is not taken here.", hint="GET /openapi.json has what is taken.")
    return BadInputError(str(error.detail)[:_TELLS], hint="GET /openapi.json has what is taken.")
