"""Errors keep the status and the shape of the upstream; after the first byte they are events of the client's API."""

import json
import socket
from typing import Any

import httpx2
import pytest
from tests.server.running import running
from tests.server.upstreams import PATHS, Answer, body_for, chat_events, message_events, proxied, response_events, sse
from tests.wire.serving import Flow, Outcome, Plain, json_answer

from lamella.errors import AuthenticationError, LamellaError, RateLimitError, RequestRejectedError
from lamella.testing import ScriptedProvider, ScriptedReply

HI = [{"role": "user", "content": "hi"}]
PAIRS = [(wire, kind) for wire in PATHS for kind in ("anthropic", "openai", "compatible")]
STREAMS = {"anthropic": message_events(), "openai": response_events(), "compatible": chat_events()}
FULL_STREAMS = {("chat", "openai"): chat_events()}


def refuse(status: int, **headers: str) -> Any:  # noqa: ANN401 - an answer function
    error = {"type": "error", "error": {"type": "some_error", "message": "No.", "code": "c", "param": None}}
    return lambda _call: json_answer(error, status=status, headers=headers)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [400, 401, 404, 413, 429, 500, 529])
@pytest.mark.parametrize(("wire", "kind"), PAIRS)
def test_upstream_status_and_retry_after_are_kept(wire: str, kind: str, status: int, *, stream: bool) -> None:
    with proxied(kind, refuse(status, **{"retry-after": "7", "request-id": "r1"})) as proxy:
        answer = proxy.post(PATHS[wire], body_for(wire, HI, stream=stream))
        assert (answer.status_code, answer.headers["retry-after"], answer.headers["request-id"]) == (status, "7", "r1")
        assert answer.json()["error"]["message"] == "No."
        assert len(proxy.upstream.calls) == 1


def test_same_wire_error_body_is_unchanged_and_refused_key_is_explained() -> None:
    with proxied("anthropic", lambda _call: Plain(status=401, body=b'{"x": 1.0}', headers={})) as proxy:
        answer = proxy.post(PATHS["messages"], body_for("messages", HI))
        assert (answer.status_code, answer.content) == (401, b'{"x": 1.0}')
        assert "key of this server" in answer.headers["x-lamella-note"]


@pytest.mark.parametrize(("wire", "kind"), PAIRS)
def test_stream_without_end_is_an_error(wire: str, kind: str) -> None:
    chunks = FULL_STREAMS.get((wire, kind), STREAMS[kind])
    # Without the last events, and with half of one.
    cut = [*chunks[:-3], chunks[-3][: len(chunks[-3]) // 2]]

    with proxied(kind, lambda _call: Flow(chunks=cut, whole=False)) as proxy:
        answer = proxy.post(PATHS[wire], body_for(wire, HI, stream=True))
        if answer.status_code == 502:
            # The translation had nothing to send yet.
            assert (kind, answer.json()["error"]["code"]) == ("openai", "reply_broken")
            return
        *_, last = [one for one in answer.text.split("\n\n") if one]
        fields = json.loads(last.partition("data: ")[2])
        assert fields["message"] if wire == "responses" else fields["error"]["message"]
        assert wire == "chat" or last.startswith("event: error")
        assert "[DONE]" not in answer.text


@pytest.mark.parametrize(("wire", "kind"), PAIRS)
def test_no_answer_is_a_bad_gateway(wire: str, kind: str) -> None:
    with proxied(kind, lambda _call: Flow(chunks=[], whole=False)) as proxy:
        answer = proxy.post(PATHS[wire], body_for(wire, HI, stream=True))
        assert (answer.status_code, answer.json()["error"]["code"]) == (502, "reply_broken")


@pytest.mark.parametrize("wire", PATHS)
def test_error_as_the_first_event_has_an_http_status(wire: str) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with proxied("anthropic", lambda _call: Flow(chunks=[sse(error, "error")])) as proxy:
        answer = proxy.post(PATHS[wire], body_for(wire, HI, stream=True))
        assert (answer.status_code, answer.json()["error"]["message"]) == (529, "Overloaded")


@pytest.mark.parametrize(
    ("wire", "kind"), [("chat", "compatible"), ("messages", "compatible"), ("responses", "compatible")]
)
@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"type": "server_error", "code": 529}, 529),
        ({"code": "503"}, 503),
        ({"type": "invalid_request_error", "code": "context_length_exceeded"}, 400),
        ({"type": "requests", "code": "rate_limit_exceeded"}, 429),
        ({"type": "insufficient_quota", "code": "insufficient_quota"}, 429),
        ({"type": "server_error", "code": None}, 500),
        ({"code": 9_999}, 502),
        ({"code": True}, 502),
    ],
)
def test_error_in_a_stream_has_the_status_that_it_names(
    wire: str, kind: str, error: dict[str, Any], status: int
) -> None:
    with proxied(kind, lambda _call: Flow(chunks=[sse({"error": {"message": "No.", **error}})])) as proxy:
        answer = proxy.post(PATHS[wire], body_for(wire, HI, stream=True))
        assert (answer.status_code, answer.json()["error"]["message"]) == (status, "No.")


@pytest.mark.parametrize("wire", PATHS)
def test_unreachable_upstream_is_a_bad_gateway(wire: str) -> None:
    with proxied("anthropic") as proxy:
        proxy.upstream.ending.set()
        provider: Any = proxy.server.state.engine_pool.get_or_open_provider("scripted:tides", trusted=True)
        provider._address = "http://127.0.0.1:1"
        answer = proxy.post(PATHS[wire], body_for(wire, HI))
        assert (answer.status_code, answer.json()["error"]["code"]) == (502, "unreachable")


@pytest.mark.parametrize("wire", PATHS)
@pytest.mark.parametrize(
    ("error", "status"),
    [
        (AuthenticationError("No.", hint="Give another key."), 401),
        (RequestRejectedError("No.", hint="Mend it."), 400),
        (RateLimitError("No.", hint="Wait.", wait=3), 429),
    ],
)
def test_errors_of_other_providers_have_the_status_of_the_api(wire: str, error: LamellaError, status: int) -> None:
    with running("memory:", ScriptedProvider(ScriptedReply(error=error))) as server:
        answer = server.client.post(PATHS[wire], json=body_for(wire, HI, stream=True))
        assert (answer.status_code, answer.json()["error"]["hint"]) == (status, error.hint)
        assert status != 429 or answer.headers["retry-after"] == "3"


@pytest.mark.parametrize("wire", PATHS)
def test_error_after_the_first_text_is_an_event(wire: str) -> None:
    broken = ScriptedReply(text="At n", error=RequestRejectedError("No.", hint="Mend it."))
    with running("memory:", ScriptedProvider(broken)) as server:
        answer = server.client.post(PATHS[wire], json=body_for(wire, HI, stream=True))
        assert answer.status_code == 200
        last = [one for one in answer.text.split("\n\n") if one][-1]
        assert '"message":"No."' in last


def _always(outcome: Outcome) -> Answer:
    return lambda _call: outcome


def test_garbage_of_an_upstream_is_a_bad_gateway_or_an_error_event() -> None:
    garbage: list[Outcome] = [
        Flow(chunks=[sse({"type": "message_start", "message": "x"}, "message_start")]),
        Flow(chunks=[sse({"type": "content_block_delta", "delta": 5}, "content_block_delta")]),
        Flow(chunks=[b"data: {{{\n\n", b"\x00\xff\n\n"]),
        Plain(body=b"<html>", headers={"content-type": "text/html"}),
    ]
    for outcome in garbage:
        with proxied("anthropic", _always(outcome)) as proxy:
            answer = proxy.post(PATHS["chat"], body_for("chat", HI))
            assert answer.status_code == 502, answer.text


def test_request_is_refused_with_the_name_of_the_field() -> None:
    refused: list[tuple[str, dict[str, Any], str]] = [
        ("chat", {"n": 2}, "n"),
        ("chat", {"logprobs": True}, "logprobs"),
        ("chat", {"response_format": {"type": "json_object"}}, "response_format.type"),
        ("chat", {"x_unknown": 1}, "x_unknown"),
        ("chat", {"messages": [{"role": "oracle", "content": "x"}]}, "messages.0.role"),
        ("responses", {"background": True}, "background"),
        ("responses", {"conversation": "c"}, "conversation"),
        ("responses", {"tools": [{"type": "computer"}]}, "tools.0.type"),
        ("responses", {"tools": [{"type": "web_search"}], "tool_choice": "required"}, "tools.0.type"),
    ]
    with proxied("anthropic") as proxy:
        for wire, fields, param in refused:
            answer = proxy.post(PATHS[wire], {**body_for(wire, HI), **fields})
            error = answer.json()["error"]
            assert (answer.status_code, error["type"], error["param"]) == (400, "invalid_request_error", param)
        assert proxy.upstream.calls == []
    with proxied("compatible") as proxy:
        for fields, param in (({"top_k": 5}, "top_k"), ({"mcp_servers": [{}]}, "mcp_servers")):
            error = proxy.post(PATHS["messages"], body_for("messages", HI, **fields)).json()["error"]
            assert (error["type"], error["param"]) == ("invalid_request_error", param)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", PATHS)
def test_client_that_leaves_ends_the_request_upstream(wire: str, *, stream: bool) -> None:
    with proxied("anthropic", lambda _call: Flow(chunks=message_events()[:4], hangs=True)) as proxy:
        address, data = httpx2.URL(proxy.server.url), json.dumps(body_for(wire, HI, stream=stream)).encode()
        head = f"POST {PATHS[wire]} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n\r\n"
        with socket.create_connection((address.host, address.port or 0)) as client:
            client.sendall(head.encode() + data)
            assert proxy.upstream.arrived.wait(20)
        assert proxy.upstream.left.wait(15)


@pytest.mark.parametrize(
    ("wire", "kind"),
    [("messages", "compatible"), ("messages", "openai"), ("chat", "anthropic"), ("responses", "anthropic")],
)
def test_answer_that_breaks_off_is_a_bad_gateway_for_a_client_that_does_not_stream(wire: str, kind: str) -> None:
    chunks = {"anthropic": message_events()[:4], "openai": response_events()[:3], "compatible": chat_events()[:3]}[kind]
    with proxied(kind, lambda _call: Flow(chunks=chunks)) as proxy:
        answer = proxy.post(PATHS[wire], body_for(wire, HI))
        assert (answer.status_code, answer.json()["error"]["code"]) == (502, "reply_broken")


HALF = "\\ud83d"
HALF_EVENTS = {
    "anthropic": message_events({"type": "text", "text": "a \ud83d"}, {"type": "text", "text": "\ude42"}),
    "compatible": [*chat_events("a \ud83d")[:-3], *chat_events("\ude42")[1:]],
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("wire", "kind"),
    [("messages", "compatible"), ("chat", "anthropic"), ("responses", "anthropic"), ("responses", "compatible")],
)
def test_halves_of_surrogate_pairs_are_answered_as_json(wire: str, kind: str, *, stream: bool) -> None:
    with proxied(kind, lambda _call: Flow(chunks=HALF_EVENTS[kind])) as proxy:
        body = json.dumps(body_for(wire, [{"role": "user", "content": "\ud83d"}], stream=stream) | {"model": "\ud83d"})
        answer = proxy.post(PATHS[wire], body.encode())
        assert answer.status_code == 200, answer.text
        text = answer.content.decode("utf-8")
        assert HALF in text
        if not stream and wire != "messages":
            found = json.loads(text)
            said = (
                found["choices"][0]["message"]["content"]
                if wire == "chat"
                else found["output"][0]["content"][0]["text"]
            )
            assert said == "a 🙂"
        if wire == "responses" and not stream:
            assert proxy.server.client.get(f"/v1/responses/{json.loads(text)['id']}").json() == json.loads(text)


@pytest.mark.parametrize("wire", PATHS)
def test_half_of_a_surrogate_pair_in_a_name_is_refused_or_a_label(wire: str) -> None:
    with proxied("anthropic") as proxy:
        for body, status in (
            ({"\ud83d": 1}, 400),
            ({"lamella": {"\ud83d": 1}}, 400),
            ({"lamella": {"conversation": "\ud83d"}}, 200),
        ):
            if wire == "messages" and "lamella" not in body:
                continue
            answer = proxy.post(PATHS[wire], json.dumps(body_for(wire, HI) | body).encode())
            assert answer.status_code == status, answer.text
            assert status == 400 or answer.headers["x-lamella-conversation"] == "%3F"
