"""``server.errors``: the status, body and headers of every error, also in the formats of other APIs, and its hints."""

from collections.abc import Iterator

import pytest

from lamella import errors
from lamella.errors import LamellaError
from lamella.hints import Hint
from lamella.server.errors import HTTP_HINTS, error_headers, error_status_and_body, http_status, is_compat_path

STATUSES = {
    400: "BadInputError TranscriptError SettingError ArtifactError TextError SecretError InvalidOperationError "
    "WorkflowError WriteDeniedError UsageError PathOutsideVaultError SourceUnreadableError AddressNotAllowedError "
    "SourceUnreachableError ExtraNotInstalledError NotAvailableError DocumentError",
    401: "NotAuthenticatedError",
    403: "UntrustedError PermissionDeniedError OriginNotAllowedError",
    404: "SourceNotFoundError NotFoundError",
    408: "RequestTimeoutError",
    409: "HistoryConflictError NameConflictError RunInProgressError ConflictError ReplyOnOtherBranchError",
    410: "ConversationErasedError",
    413: "SourceTooLargeError ContextOverflowError RequestTooLargeError ContextBudgetExceededError",
    415: "UnsupportedEncodingError",
    429: "TooManyRequestsError RateLimitError",
    500: "LamellaError StoreError StoreCorruptedError StoreVersionError InvariantViolatedError",
    502: "RequestRejectedError AuthenticationError ModelNotFoundError WrongEndpointError SdkNotInstalledError "
    "ProviderError InvalidReplyError RetryableProviderError ProviderUnreachableError",
    503: "ServerUnavailableError StoreUnavailableError ProviderOverloadedError IndexUnavailableError",
    504: "ProviderTimeoutError",
}
OPENAI, ANTHROPIC = "/v1/chat/completions", "/v1/messages"


def iter_classes(parent: type[LamellaError] = LamellaError) -> Iterator[type[LamellaError]]:
    yield parent
    for child in parent.__subclasses__():
        yield from iter_classes(child)


def make(name: str, hint: Hint = "Do this.") -> LamellaError:
    """An error of a class, without the arguments that some classes need for their message."""
    kind: type[LamellaError] = getattr(errors, name)
    error = kind.__new__(kind)
    LamellaError.__init__(error, f"{name} happened.", hint=hint)
    return error


def test_every_error_has_its_status() -> None:
    known = {name: status for status, names in STATUSES.items() for name in names.split()}
    found = {kind.__name__ for kind in iter_classes() if kind.__module__ == errors.__name__}
    assert found == set(known)
    assert {name: http_status(make(name)) for name in known} == known


@pytest.mark.parametrize(
    ("path", "is_compat"),
    [
        ("/v1/chat/completions", True),
        ("/v1/responses/r-1", True),
        ("/v1/embeddings", True),
        ("/v1/messages", True),
        ("/v1/messages/count_tokens", True),
        ("/v1/conversations", False),
        ("/", False),
    ],
)
def test_compatibility_endpoints_are_known_by_their_path(path: str, *, is_compat: bool) -> None:
    assert is_compat_path(path) is is_compat


def test_body_has_code_message_and_hint_of_the_interface() -> None:
    error = make("UsageError", lambda hints: f"See {hints.list_chats_hint()}.")
    expected = {"code": "bad_usage", "message": "UsageError happened.", "hint": "See `GET /v1/conversations`."}
    assert error_status_and_body(error) == (400, {"error": expected})


@pytest.mark.parametrize(
    ("name", "status", "openai", "anthropic"),
    [
        ("UsageError", 400, "invalid_request_error", "invalid_request_error"),
        ("AuthenticationError", 401, "invalid_request_error", "authentication_error"),
        ("NotAuthenticatedError", 401, "invalid_request_error", "authentication_error"),
        ("PermissionDeniedError", 403, "invalid_request_error", "permission_error"),
        ("ModelNotFoundError", 404, "invalid_request_error", "not_found_error"),
        ("RequestRejectedError", 400, "invalid_request_error", "invalid_request_error"),
        ("RequestTooLargeError", 413, "invalid_request_error", "request_too_large"),
        ("RateLimitError", 429, "rate_limit_error", "rate_limit_error"),
        ("StoreError", 500, "server_error", "api_error"),
        ("WrongEndpointError", 502, "server_error", "api_error"),
        ("ProviderOverloadedError", 503, "server_error", "overloaded_error"),
        ("ProviderTimeoutError", 504, "server_error", "timeout_error"),
    ],
)
def test_compatibility_endpoint_answers_as_its_provider_would(
    name: str, status: int, openai: str, anthropic: str
) -> None:
    error = make(name)
    common = {"code": error.code, "message": error.message, "hint": "Do this."}
    assert error_status_and_body(error, OPENAI) == (status, {"error": {"param": None, **common, "type": openai}})
    assert error_status_and_body(error, ANTHROPIC) == (
        status,
        {"type": "error", "error": {**common, "type": anthropic}},
    )


def test_keys_in_a_message_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-abcdefghijklm")
    error = errors.UsageError("The key sk-ant-abcdefghijklm is wrong.", hint="Check it.")
    assert "abcdefghijklm" not in str(error_status_and_body(error))


@pytest.mark.parametrize("error", [RecursionError(), MemoryError()])
def test_input_that_is_too_large_for_the_process_is_the_callers_error(error: BaseException) -> None:
    status, body = error_status_and_body(error)
    assert status == 413
    assert "nested too deep" in str(body)


def test_unexpected_exception_shows_only_its_type(caplog: pytest.LogCaptureFixture) -> None:
    status, body = error_status_and_body(ValueError("the secret text"))
    assert (status, "secret" in str(body)) == (500, False)
    assert "ValueError" in str(body)
    assert [record.getMessage() for record in caplog.records] == ['unexpected "ValueError"']


def test_headers_say_how_to_log_in_and_when_to_try_again() -> None:
    busy = errors.RateLimitError("Busy.", hint="Wait.", wait=2.6)
    soon = errors.ProviderOverloadedError("Busy.", hint="Wait.", wait=0.01)
    assert error_headers(make("NotAuthenticatedError")) == {"WWW-Authenticate": "Bearer"}
    assert error_headers(busy) == {"Retry-After": "3"}
    assert error_headers(soon) == {"Retry-After": "1"}
    assert error_headers(make("UsageError")) == {}


def test_hints_name_requests() -> None:
    hints = HTTP_HINTS
    assert [
        hints.option_hint("model"),
        hints.create_store_hint(),
        hints.verify_store_hint(),
        hints.repair_store_hint(),
        hints.list_chats_hint(),
        hints.show_chat_hint("my beds"),
        hints.show_chat_hint("my beds", "1f"),
        hints.switch_branch_hint("my beds", "1f"),
        hints.trust_hint("model", "m", "http://x"),
        hints.write_conflict_hint(),
        hints.send_with_limit_hint(max_tokens=9),
        hints.finish_calls_hint(["search"]),
        hints.start_workflow_hint(),
        hints.replay_transcript_hint(),
    ] == [
        "the field `model`",
        "`POST /v1/conversations`",
        "the command `lamella store verify` of whoever runs the server",
        "the command `lamella store verify --repair` of whoever runs the server",
        "`GET /v1/conversations`",
        "`GET /v1/conversations/my%20beds`",
        "`GET /v1/conversations/my%20beds?branch=1f`",
        '`POST /v1/conversations/my%20beds/switch` with {"head": "1f"}',
        "whoever runs the server says so once, with `POST /v1/trust` or the command `lamella trust add`",
        "Send the request again.",
        '`POST …/messages/{message}/regenerate` and {"max_tokens": 9}',
        "Hand back what they gave with `POST …/messages/{message}/results`.",
        '`POST …/workflow` with {"workflow": "paper"}',
        "the command `lamella replay`",
    ]
