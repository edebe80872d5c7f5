"""What providers say when they refuse, and how long they ask to wait."""

from time import process_time

import pytest

from lamella.adapters.providers.connection.failures import (
    Refusal,
    Target,
    explain_broken,
    explain_refusal,
    read_wait,
)
from lamella.errors import (
    AddressError,
    ContextOverflowError,
    KeyRefusedError,
    LamellaError,
    ModelMissingError,
    OverloadedError,
    ProviderError,
    ProviderRefusedError,
    ProviderTimeoutError,
    RateLimitedError,
)

TARGET = Target(provider="Somebody", model="some-model", address="http://host", patience=3.0)


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        (Refusal(status=401), KeyRefusedError),
        (Refusal(status=403), KeyRefusedError),
        (Refusal(status=400, words="API key not valid. Please pass a valid API key."), KeyRefusedError),
        (Refusal(status=404, words="The model some-model does not exist"), ModelMissingError),
        (Refusal(status=404, kind="model_not_found"), ModelMissingError),
        (Refusal(status=404, words="Invalid URL (POST /v2)"), AddressError),
        (Refusal(status=404, words="some-model", spoken=False), AddressError),
        (Refusal(status=301, words=""), AddressError),
        (Refusal(status=405, words="Method Not Allowed"), AddressError),
        (Refusal(status=413), ContextOverflowError),
        (Refusal(status=400, kind="context_length_exceeded"), ContextOverflowError),
        (Refusal(status=400, words="This model's maximum context length is 10 tokens"), ContextOverflowError),
        (Refusal(status=500, words="context window service failed"), ProviderError),
        (Refusal(status=402), ProviderRefusedError),
        (Refusal(status=429, kind="insufficient_quota"), ProviderRefusedError),
        (Refusal(status=429), RateLimitedError),
        (Refusal(status=503), OverloadedError),
        (Refusal(status=504), ProviderTimeoutError),
        (Refusal(status=200, kind="overloaded_error"), OverloadedError),
        (Refusal(status=200, kind="rate_limit_exceeded"), RateLimitedError),
        (Refusal(status=200, kind="something new"), ProviderError),
        (Refusal(status=422, words="bad field"), ProviderRefusedError),
    ],
)
def test_a_refusal_is_told_by_whose_move_it_is(refusal: Refusal, expected: type[LamellaError]) -> None:
    error = explain_refusal(refusal, TARGET)
    assert type(error) is expected
    assert "Somebody" in str(error)


def test_words_of_a_provider_are_quoted_on_one_line_and_not_without_end() -> None:
    error = explain_broken(TARGET, "a\n b" * 1_000)
    assert "\n" not in str(error)
    assert len(str(error)) < 600


@pytest.mark.parametrize("tag", ["<style ", "<title>", "<", "<script></scrip", "<!--"])
def test_a_hostile_page_is_quoted_about_as_fast_as_an_honest_one(tag: str) -> None:
    def take(page: str) -> float:
        began = process_time()
        explain_broken(TARGET, page)
        return process_time() - began

    size = 180_000
    honest = "<html>" + "<p>Some words that a page shows.</p>" * (size // 36)
    hostile = "<html>" + tag * (size // len(tag))
    assert min(take(hostile) for _ in range(3)) < 30 * min(take(honest) for _ in range(3))


def test_of_a_page_is_quoted_what_it_shows() -> None:
    page = "<html><title>x</title><STYLE media=a>p{}</STYLE ><p>Bad <b>Gateway</b><script>if (a < b) {}</script><title>"
    assert str(explain_broken(TARGET, page)) == "Somebody broke off its answer: Bad Gateway."


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
def test_the_wait_is_read_from_the_headers(headers: dict[str, str], wait: float | None) -> None:
    assert read_wait(headers) == wait
