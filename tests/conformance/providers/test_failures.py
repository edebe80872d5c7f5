"""Every failure becomes one of our errors, by who can fix it: the caller, the provider, or time."""

import socket

import pytest
from tests.wire.kinds import Wire
from tests.wire.material import ask, collect, reply_to, user
from tests.wire.script import Act, Cut, Fail, Garbage, Page, Say, Silence

from lamella.core.messages import UNKNOWN_USAGE, ModelRequest
from lamella.errors import (
    AuthenticationError,
    ContextOverflowError,
    InvalidReplyError,
    LamellaError,
    ModelNotFoundError,
    ProviderError,
    ProviderOverloadedError,
    ProviderTimeoutError,
    ProviderUnreachableError,
    RateLimitError,
    RetryableProviderError,
    WrongEndpointError,
)


def _request(wire: Wire, *, model: str | None = None) -> ModelRequest:
    return ask(user("Hello"), model=model or wire.model)


def _fail(
    wire: Wire, *acts: Act, key: str | None = None, model: str | None = None, patience: float = 10.0
) -> LamellaError:
    with wire.serve(*acts) as server, pytest.raises(LamellaError) as caught:
        collect(wire.connect(server.url + wire.root, key or wire.key, patience), _request(wire, model=model))
    assert len(server.calls) <= 1, "nothing is tried twice"
    assert caught.value.hint
    return caught.value


def test_wrong_key_raises_authentication_error(wire: Wire) -> None:
    error = _fail(wire, key="wrong")
    assert type(error) is AuthenticationError
    assert wire.key not in str(error)


def test_unknown_model_is_named(wire: Wire) -> None:
    error = _fail(wire, model="no-such-model")
    assert type(error) is ModelNotFoundError
    assert "no-such-model" in error.hint


def test_wrong_path_is_wrong_endpoint(wire: Wire) -> None:
    with wire.serve() as server, pytest.raises(WrongEndpointError) as caught:
        collect(wire.connect(f"{server.url}/elsewhere", wire.key, 10.0), _request(wire))
    assert "/elsewhere" in caught.value.hint


def test_web_page_is_wrong_endpoint(wire: Wire) -> None:
    assert type(_fail(wire, Page())) is WrongEndpointError


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_server_redirect_does_not_leak_conversation_or_key(wire: Wire, status: int) -> None:
    with wire.serve(Say()) as elsewhere:
        error = _fail(wire, Fail(status=status, headers={"location": f"{elsewhere.url}{wire.root}/steal"}))
    assert type(error) is WrongEndpointError
    assert str(status) in str(error)
    assert "redirect" in error.hint
    assert not elsewhere.calls


def test_unreachable_host_raises_provider_unreachable(wire: Wire) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ProviderUnreachableError) as caught:
            collect(wire.connect(url + wire.root, wire.key, 10.0), _request(wire))
    assert url in str(caught.value)


@pytest.mark.parametrize("address", ["", "localhost:8000", "ftp://host", "http://", "http://[::1", "http://host:99999"])
def test_invalid_address_is_refused_before_sending(wire: Wire, address: str) -> None:
    with pytest.raises(WrongEndpointError) as caught:
        collect(wire.connect(address, wire.key, 10.0), _request(wire))
    assert repr(address) in str(caught.value)


@pytest.mark.parametrize("key", ["two words", "line\n", "schlüssel", "\x00"])
def test_key_invalid_in_header_is_refused_without_showing_it(wire: Wire, key: str) -> None:
    with pytest.raises(AuthenticationError) as caught:
        collect(wire.connect("http://127.0.0.1:1", key, 10.0), _request(wire))
    assert key not in str(caught.value)


def test_rate_limit_gives_time_to_wait(wire: Wire) -> None:
    error = _fail(wire, wire.rate_limit)
    assert isinstance(error, RateLimitError)
    assert error.wait == 17.0
    assert "17 seconds" in error.hint


def test_overloaded_provider_error_is_retryable(wire: Wire) -> None:
    error = _fail(wire, wire.overload)
    assert isinstance(error, ProviderOverloadedError)
    assert error.wait is None


def test_oversized_request_raises_context_overflow(wire: Wire) -> None:
    assert type(_fail(wire, wire.overflow)) is ContextOverflowError


def test_unnamed_failure_is_provider_error(wire: Wire) -> None:
    error = _fail(wire, Fail())
    assert type(error) is ProviderError
    assert "500" in str(error)


def test_failure_within_stream_is_retryable(wire: Wire) -> None:
    assert isinstance(_fail(wire, wire.late_failure), RetryableProviderError)


@pytest.mark.parametrize("act", [Silence(), Silence(late=True)], ids=["at once", "later"])
def test_hanging_server_times_out(wire: Wire, act: Act) -> None:
    error = _fail(wire, act, patience=0.3)
    assert type(error) is ProviderTimeoutError
    assert "0.3 seconds" in str(error)


def test_garbage_is_invalid_reply(wire: Wire) -> None:
    assert type(_fail(wire, Garbage())) is InvalidReplyError


@pytest.mark.parametrize("act", [Cut(), Cut(clean=True)], ids=["broken", "ended"])
def test_stream_closed_in_middle_is_invalid_reply(wire: Wire, act: Act) -> None:
    assert type(_fail(wire, act)) is InvalidReplyError


def test_impossible_usage_is_unknown_with_reason_and_answer_is_kept(wire: Wire) -> None:
    with wire.serve(Say(text="Noon.", usage=wire.impossible)) as server:
        reply = reply_to(wire.connect(server.url + wire.root, wire.key, 10.0), _request(wire))
    assert reply.text == "Noon."
    assert reply.usage.fault
    assert (reply.usage.plain, reply.usage.read, reply.usage.output) == (None, None, None)


def test_usage_of_the_wrong_type_is_unknown(wire: Wire) -> None:
    with wire.serve(Say(text="Noon.", usage=wire.misled)) as server:
        reply = reply_to(wire.connect(server.url + wire.root, wire.key, 10.0), _request(wire))
    assert reply.text == "Noon."
    assert reply.usage.plain == UNKNOWN_USAGE.plain
