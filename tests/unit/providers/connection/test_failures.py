"""Error responses of providers, and the delay that they request."""

from time import process_time

import pytest

from lamella.errors import (
    AuthenticationError,
    ContextOverflowError,
    LamellaError,
    ModelNotFoundError,
    ProviderError,
    ProviderOverloadedError,
    ProviderTimeoutError,
    RateLimitError,
    RequestRejectedError,
    WrongEndpointError,
)
from lamella.providers.connection import (
    ErrorResponse,
    RequestTarget,
    error_from_response,
    invalid_answer_error,
    parse_retry_after,
)

TARGET = RequestTarget(provider="Somebody", model="some-model", address="http://host", timeout=3.0)


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        (ErrorResponse(status=401), AuthenticationError),
        (ErrorResponse(status=403), AuthenticationError),
        (ErrorResponse(status=400, message="API key not valid. Please pass a valid API key."), AuthenticationError),
        (ErrorResponse(status=404, message="The model some-model does not exist"), ModelNotFoundError),
        (ErrorResponse(status=404, kind="model_not_found"), ModelNotFoundError),
        (ErrorResponse(status=404, message="Invalid URL (POST /v2)"), WrongEndpointError),
        (ErrorResponse(status=404, message="some-model", is_api_error=False), WrongEndpointError),
        (ErrorResponse(status=301, message=""), WrongEndpointError),
        (ErrorResponse(status=405, message="Method Not Allowed"), WrongEndpointError),
        (ErrorResponse(status=413), ContextOverflowError),
        (ErrorResponse(status=400, kind="context_length_exceeded"), ContextOverflowError),
        (ErrorResponse(status=400, message="This model's maximum context length is 10 tokens"), ContextOverflowError),
        (ErrorResponse(status=500, message="context window service failed"), ProviderError),
        (ErrorResponse(status=402), RequestRejectedError),
        (ErrorResponse(status=429, kind="insufficient_quota"), RequestRejectedError),
        (ErrorResponse(status=429), RateLimitError),
        (ErrorResponse(status=503), ProviderOverloadedError),
        (ErrorResponse(status=504), ProviderTimeoutError),
        (ErrorResponse(status=200, kind="overloaded_error"), ProviderOverloadedError),
        (ErrorResponse(status=200, kind="rate_limit_exceeded"), RateLimitError),
        (ErrorResponse(status=200, kind="something new"), ProviderError),
        (ErrorResponse(status=422, message="bad field"), RequestRejectedError),
    ],
)
def test_error_class_follows_response(refusal: ErrorResponse, expected: type[LamellaError]) -> None:
    error = error_from_response(refusal, TARGET)
    assert type(error) is expected
    assert "Somebody" in str(error)


def test_words_of_a_provider_are_quoted_on_one_line_and_not_without_end() -> None:
    error = invalid_answer_error(TARGET, "a\n b" * 1_000)
    assert "\n" not in str(error)
    assert len(str(error)) < 600


@pytest.mark.parametrize("tag", ["<style ", "<title>", "<", "<script></scrip", "<!--"])
def test_hostile_page_is_quoted_about_as_fast_as_an_honest_one(tag: str) -> None:
    def take(page: str) -> float:
        began = process_time()
        invalid_answer_error(TARGET, page)
        return process_time() - began

    size = 180_000
    honest = "<html>" + "<p>Some words that a page shows.</p>" * (size // 36)
    hostile = "<html>" + tag * (size // len(tag))
    assert min(take(hostile) for _ in range(3)) < 30 * min(take(honest) for _ in range(3))


def test_html_error_is_quoted_as_visible_text() -> None:
    page = "<html><title>x</title><STYLE media=a>p{}</STYLE ><p>Bad <b>Gateway</b><script>if (a < b) {}</script><title>"
    assert str(invalid_answer_error(TARGET, page)) == "Somebody broke off its answer: Bad Gateway."


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"retry-after": "17"}, 17.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Mon, 16 Nov 2026 10:00:30 GMT", "date": "Mon, 16 Nov 2026 10:00:00 GMT"}, 30.0),
        ({"retry-after": "Mon, 16 Nov 2026 09:00:00 GMT", "date": "Mon, 16 Nov 2026 10:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "inf"}, None),
    ],
)
def test_wait_is_read_from_the_headers(headers: dict[str, str], wait: float | None) -> None:
    assert parse_retry_after(headers) == wait
