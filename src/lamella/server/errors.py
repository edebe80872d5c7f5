"""Errors over HTTP: hints worded for requests, status codes, and the fields that clients of other APIs expect.

``add_error_handlers`` makes every error a response in the same format. ``http_status`` and ``error_status_and_body`` return
its status and body. ``HttpHints`` names requests that can be sent as they are. ``with_compat_fields`` adds the fields
of a provider's API.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from msgspec import UNSET, UnsetType, to_builtins
from starlette.exceptions import HTTPException

from lamella import errors
from lamella.errors import (
    AuthenticationError,
    BadInputError,
    ConflictError,
    ContextBudgetExceededError,
    ContextOverflowError,
    ConversationErasedError,
    HistoryConflictError,
    IndexUnavailableError,
    LamellaError,
    ModelNotFoundError,
    ProviderError,
    ProviderOverloadedError,
    ProviderTimeoutError,
    RateLimitError,
    ReplyOnOtherBranchError,
    RequestRejectedError,
    SourceNotFoundError,
    SourceTooLargeError,
    StoreUnavailableError,
    UntrustedError,
)
from lamella.schemas.body import ErrorJson, RunningTurnJson, error_to_json
from lamella.server.json_responses import EscapedJSONResponse
from lamella.wiring import mask_keys


class HttpHints:
    """Hints that name requests of the ``/v1`` API."""

    def option_hint(self, name: str) -> str:
        return f"the field `{name}`"

    def create_store_hint(self) -> str:
        return "`POST /v1/conversations`"

    def verify_store_hint(self) -> str:
        return "the command `lamella store verify` of whoever runs the server"

    def repair_store_hint(self) -> str:
        return "the command `lamella store verify --repair` of whoever runs the server"

    def list_chats_hint(self) -> str:
        return "`GET /v1/conversations`"

    def show_chat_hint(self, name: str, head: str | None = None) -> str:
        branch = "" if head is None else f"?branch={head}"
        return f"`GET /v1/conversations/{quote(name, safe='')}{branch}`"

    def switch_branch_hint(self, name: str, head: str) -> str:
        return f'`POST /v1/conversations/{quote(name, safe="")}/switch` with {{"head": "{head}"}}'

    def trust_hint(self, field: str, name: str, location: str) -> str:
        return "whoever runs the server says so once, with `POST /v1/trust` or the command `lamella trust add`"

    def write_conflict_hint(self) -> str:
        return "Send the request again."

    def send_with_limit_hint(self, *, max_tokens: int) -> str:
        return f'`POST …/messages/{{message}}/regenerate` and {{"max_tokens": {max_tokens}}}'

    def finish_calls_hint(self, tools: Sequence[str]) -> str:
        return "Hand back what they gave with `POST …/messages/{message}/results`."

    def start_workflow_hint(self) -> str:
        return '`POST …/workflow` with {"workflow": "paper"}'

    def replay_transcript_hint(self) -> str:
        return "the command `lamella replay`"


HTTP_HINTS = HttpHints()


# Errors of the compatibility endpoints.

_OPENAI_PATHS = ("/v1/chat/completions", "/v1/responses", "/v1/embeddings")
_ANTHROPIC_PATHS = ("/v1/messages",)
_FIRST_SERVER_ERROR = 500
_TOO_MANY_REQUESTS = 429
_ANTHROPIC_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
# Where a client speaks to a provider through this server, it gets the status that the provider would give.
_COMPAT_STATUSES: tuple[tuple[type[LamellaError], int], ...] = (
    (AuthenticationError, 401),
    (ModelNotFoundError, 404),
    (errors.WrongEndpointError, 502),
    (RequestRejectedError, 400),
)


def is_compat_path(path: str) -> bool:
    """Return whether a path belongs to a compatibility endpoint."""
    return path.startswith((*_OPENAI_PATHS, *_ANTHROPIC_PATHS))


def with_compat_fields(path: str, status: int, body: dict[str, Any]) -> dict[str, Any]:
    """Add the fields of a provider's API to an error body if the path is a compatibility endpoint."""
    error = body["error"]
    if path.startswith(_ANTHROPIC_PATHS):
        usual = "invalid_request_error" if status < _FIRST_SERVER_ERROR else "api_error"
        return {"type": "error", "error": {**error, "type": _ANTHROPIC_TYPES.get(status, usual)}}
    if path.startswith(_OPENAI_PATHS):
        kind = "invalid_request_error" if status < _FIRST_SERVER_ERROR else "server_error"
        kind = "rate_limit_error" if status == _TOO_MANY_REQUESTS else kind
        return {"error": {"param": None, **error, "type": kind}}
    return body


# The format of errors.

LOGGER = logging.getLogger("lamella.server")
# The first matching class decides, so subclasses come before their parents.
_STATUS_BY_ERROR: tuple[tuple[type[LamellaError], int], ...] = (
    (errors.NotAuthenticatedError, 401),
    (errors.PermissionDeniedError, 403),
    (errors.OriginNotAllowedError, 403),
    (errors.NotFoundError, 404),
    (errors.NameConflictError, 409),
    (errors.RunInProgressError, 409),
    (errors.RequestTooLargeError, 413),
    (errors.UnsupportedEncodingError, 415),
    (errors.RequestTimeoutError, 408),
    (errors.TooManyRequestsError, 429),
    (errors.ServerUnavailableError, 503),
    (UntrustedError, 403),
    (SourceNotFoundError, 404),
    (SourceTooLargeError, 413),
    (HistoryConflictError, 409),
    (AuthenticationError, 502),
    (ContextOverflowError, 413),
    (RequestRejectedError, 502),
    (BadInputError, 400),
    (ConflictError, 409),
    (ReplyOnOtherBranchError, 409),
    (ConversationErasedError, 410),
    (StoreUnavailableError, 503),
    (RateLimitError, 429),
    (ProviderOverloadedError, 503),
    (ProviderTimeoutError, 504),
    (ProviderError, 502),
    (IndexUnavailableError, 503),
    (ContextBudgetExceededError, 413),
)
_DEFAULT_STATUS = 500
_MAX_MESSAGE_CHARS = 300


def http_status(error: LamellaError) -> int:
    """Return the HTTP status of an error."""
    return next((status for kind, status in _STATUS_BY_ERROR if isinstance(error, kind)), _DEFAULT_STATUS)


def error_status_and_body(error: BaseException, path: str = "") -> tuple[int, dict[str, object]]:
    """Return the status and the JSON body of an error.

    At the path of a compatibility endpoint, the body also has the fields that clients of that API expect.
    """
    known = to_lamella_error(error)
    status = http_status(known)
    if is_compat_path(path):
        status = next((one for kind, one in _COMPAT_STATUSES if isinstance(known, kind)), status)
    body = to_builtins(http_error_to_json(known))
    param = getattr(known, "param", None)
    if param is not None:
        body["error"]["param"] = mask_keys(param)
    return status, with_compat_fields(path, status, body)


def http_error_to_json(error: BaseException) -> ErrorJson:
    """Return the body of an error, with hints for HTTP and without API keys."""
    known = to_lamella_error(error)
    running: RunningTurnJson | UnsetType = UNSET
    if isinstance(known, errors.RunInProgressError):
        running = RunningTurnJson(conversation=known.conversation, message=known.question, since=known.since)
    return error_to_json(known, message=mask_keys(known.message), hint=known.hint_for(HTTP_HINTS), running=running)


def to_lamella_error(error: BaseException) -> LamellaError:
    """Return a Lamella error unchanged, and convert any other exception to one.

    The response to an unexpected exception has only its type. The log has the traceback.
    """
    if isinstance(error, LamellaError):
        return error
    if isinstance(error, RecursionError | MemoryError):
        return errors.RequestTooLargeError("This is nested too deep, or too large.", hint="Send less at once.")
    LOGGER.error("unexpected %s", json.dumps(type(error).__name__), exc_info=error)
    return LamellaError(
        f"Something unexpected went wrong: {type(error).__name__}.",
        hint="This is a bug in Lamella. The log of the server has more; please report it.",
    )


def error_headers(error: BaseException) -> dict[str, str]:
    """Return the headers of an error: the authentication scheme, or when to try again."""
    if isinstance(error, errors.NotAuthenticatedError):
        return {"WWW-Authenticate": "Bearer"}
    wait = getattr(error, "wait", None)
    return {"Retry-After": str(max(1, round(wait)))} if isinstance(wait, int | float) else {}


def add_error_handlers(app: FastAPI) -> None:
    """Register handlers that return every error in the same format."""

    async def handle_error(request: Request, error: Exception) -> EscapedJSONResponse:
        return _error_json_response(error, request)

    async def handle_validation_error(request: Request, error: Exception) -> EscapedJSONResponse:
        assert isinstance(error, RequestValidationError)
        return _error_json_response(_validation_error(error), request, status=422)

    async def handle_http_error(request: Request, error: Exception) -> EscapedJSONResponse:
        assert isinstance(error, HTTPException)
        return _error_json_response(_http_error(error), request, status=error.status_code, headers=error.headers)

    app.add_exception_handler(LamellaError, handle_error)
    app.add_exception_handler(RequestValidationError, handle_validation_error)
    app.add_exception_handler(HTTPException, handle_http_error)
    app.add_exception_handler(Exception, handle_error)


def _error_json_response(
    error: BaseException, request: Request, *, status: int | None = None, headers: Mapping[str, str] | None = None
) -> EscapedJSONResponse:
    found, body = error_status_and_body(error, request.url.path)
    return EscapedJSONResponse(body, status or found, headers={**error_headers(error), **(headers or {})})


def _validation_error(error: RequestValidationError) -> LamellaError:
    """Describe the invalid fields of a request, without their values."""
    wrong = [f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in error.errors()[:8]]
    problem = "; ".join(wrong)[:_MAX_MESSAGE_CHARS]
    return BadInputError(f"The request is not as it should be: {problem}.", hint="GET /openapi.json has what is taken.")


def _http_error(error: HTTPException) -> LamellaError:
    if error.status_code == 404:
        return errors.NotFoundError("There is nothing at this address.", hint="GET /openapi.json has what there is.")
    if error.status_code == 405:
        return BadInputError("This method is not taken here.", hint="GET /openapi.json has what is taken.")
    return BadInputError(str(error.detail)[:_MAX_MESSAGE_CHARS], hint="GET /openapi.json has what is taken.")
