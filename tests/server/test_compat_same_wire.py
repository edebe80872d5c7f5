"""An upstream that speaks the client's API gets the client's bytes, and the client gets the upstream's."""

import json
from typing import Any

import pytest
from tests.server.running import running
from tests.server.upstreams import (
    PATHS,
    answer_usually,
    body_for,
    chat_events,
    message_events,
    proxied,
    response_events,
    sse,
)
from tests.wire.serving import Call, Flow, Loopback, Outcome, json_answer, serve

SAME = [("messages", "anthropic"), ("chat", "openai"), ("chat", "compatible"), ("responses", "openai")]
SPEC = "The sluice opens at noon, and closes when the heron leaves. " * 8
DOCUMENT = f'<document path="spec.md">\n{SPEC}\n</document>'
HI = [{"role": "user", "content": "hi"}]
# Whitespace, key order, number spelling, escapes, unknown fields and tool JSON.
ODD = {
    "messages": b'{ "x_new": {"b":1.50,"a":1e2}, "cache_control":{"type":"ephemeral"}, "model":"lamella", "max_tokens":1e2,\n'
    b'"messages":[{"content":"caf\\u00e9 \\ud83d","role":"user"}], "tools":[{"input_schema":{"z":1,"a":2.0},"name":"t"}]}',
    "chat": b'{"messages":[{"content":"caf\\u00e9 \\/","role":"user","name":"x"}],"n":2,"logprobs":true, "model":"lamella",'
    b'"seed":7,"stop":["."],"response_format":{"type":"json_object"},"x_new":[1.0]}',
    "responses": b'{"input":"caf\\u00e9","model":"lamella","text":{"verbosity":"low"},"background":false, "x_new":1.0}',
}
STREAMS = {"messages": message_events(), "chat": chat_events(), "responses": response_events()}


@pytest.mark.parametrize(("wire", "kind"), SAME)
def test_body_differs_only_in_the_model(wire: str, kind: str) -> None:
    with proxied(kind) as proxy:
        assert proxy.post(PATHS[wire], ODD[wire]).status_code == 200
        assert proxy.sent == ODD[wire].replace(b'"lamella"', b'"scripted:tides"')


def test_automatic_breakpoint_is_added_if_client_set_none() -> None:
    with proxied("anthropic") as proxy:
        body = json.dumps(body_for("messages", HI)).encode()
        proxy.post(PATHS["messages"], body)
        assert proxy.sent == body.replace(b'"lamella"', b'"scripted:tides"').replace(
            b"{", b'{"cache_control":{"type":"ephemeral"},', 1
        )


@pytest.mark.parametrize(("wire", "kind"), SAME)
def test_stream_and_body_are_returned_unchanged(wire: str, kind: str) -> None:
    comment = b": keep-alive\r\n\r\n"

    def answer(call: Call) -> Outcome:
        usual = answer_usually(call)
        return Flow(chunks=[comment, *STREAMS[wire]]) if call.body.get("stream") else usual

    with proxied(kind, answer) as proxy:
        streamed = proxy.post(PATHS[wire], body_for(wire, HI, stream=True))
        assert streamed.content == comment + b"".join(STREAMS[wire])
        whole = proxy.post(PATHS[wire], body_for(wire, HI))
        usual: Any = answer_usually(proxy.upstream.calls[-1])
        assert whole.content == usual.body


def test_headers_pass_in_both_directions_without_the_key_of_the_client() -> None:
    def answer(_call: Call) -> Outcome:
        headers = {"request-id": "r1", "anthropic-ratelimit-requests-remaining": "9", "set-cookie": "a=b"}
        return json_answer({"type": "message"}, headers=headers)

    with proxied("anthropic", answer) as proxy:
        given = {
            "anthropic_beta": "one,two",
            "anthropic_version": "2024-01-01",
            "x_api_key": "sk-client",
            "x_other": "1",
        }
        got = proxy.post(f"{PATHS['messages']}?beta=true", body_for("messages", HI), **given)
        (call,) = proxy.upstream.calls
        assert call.path == "/v1/messages?beta=true"
        assert {name: call.headers.get(name) for name in ("anthropic-beta", "anthropic-version", "x-api-key")} == {
            "anthropic-beta": "one,two",
            "anthropic-version": "2024-01-01",
            "x-api-key": "sk-operator",
        }
        assert "x-other" not in call.headers
        assert (got.headers["request-id"], got.headers["anthropic-ratelimit-requests-remaining"]) == ("r1", "9")
        assert "set-cookie" not in got.headers


# Signed reasoning.


def say(text: str) -> dict[str, Any]:
    return {"role": "user", "content": f"{DOCUMENT}\n{text}"}


def think(signature: str) -> dict[str, Any]:
    thinking = {"type": "thinking", "thinking": "hm", "signature": signature}
    return {"role": "assistant", "content": [thinking, {"type": "text", "text": "At noon."}]}


def answer_with_signature(call: Call) -> Outcome:
    blocks = ({"type": "thinking", "thinking": "hm", "signature": "s1"}, {"type": "text", "text": "At noon."})
    return Flow(chunks=message_events(*blocks)) if call.body.get("stream") else answer_usually(call)


def test_prefix_with_unknown_signature_is_unchanged() -> None:
    with proxied("anthropic") as proxy:
        history = [say("One?"), {"role": "assistant", "content": "a"}, say("Two?"), think("unknown"), say("Three?")]
        proxy.post(PATHS["messages"], body_for("messages", history))
        sent = json.loads(proxy.sent)["messages"]
        assert sent[:4] == history[:4]
        assert sent[4]["content"] == '[Document "spec.md": identical to the copy above]\nThree?'


@pytest.mark.parametrize("stream", [False, True])
def test_known_signature_gets_bytes_it_was_made_with(*, stream: bool) -> None:
    def answer(call: Call) -> Outcome:
        if stream:
            return answer_with_signature(call)
        return json_answer({"type": "message", "content": [{"type": "thinking", "thinking": "hm", "signature": "s1"}]})

    with proxied("anthropic", answer) as proxy:
        history = [say("One?"), {"role": "assistant", "content": "a"}, say("Two?")]
        proxy.post(PATHS["messages"], body_for("messages", history, stream=stream))
        first = json.loads(proxy.sent)["messages"]
        assert "identical to the copy above" in first[2]["content"]
        proxy.post(PATHS["messages"], body_for("messages", [*history, think("s1"), say("Three?")], stream=stream))
        assert json.loads(proxy.sent)["messages"][:4] == [*first, think("s1")]


def test_refused_signature_is_retried_with_client_text() -> None:
    refusal = {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "bound to a different conversation"},
    }

    def answer(call: Call) -> Outcome:
        references = b"identical to the copy above" in call.raw
        return json_answer(refusal, status=400) if references else answer_usually(call)

    with proxied("anthropic", answer) as proxy:
        history = [think("unknown"), say("One?"), say("Two?")]
        assert proxy.post(PATHS["messages"], body_for("messages", history)).status_code == 200
        assert json.loads(proxy.sent)["messages"] == history


# A check that fails, other routes, models.


def test_request_that_fails_the_check_is_sent_as_written_and_counted() -> None:
    with proxied("openai") as proxy:
        # Nothing tells the laid out second message from the third.
        same = {"role": "user", "content": '[Document "spec.md": identical to the copy above]\nTwo?'}
        history = [say("One?"), say("Two?"), same]
        proxy.post(PATHS["chat"], body_for("chat", history))
        assert json.loads(proxy.sent)["messages"] == history
        assert "lamella_compat_check_failures_total 1.0" in proxy.server.client.get("/metrics").text


def test_signed_chat_goes_on_after_the_user_quotes_a_reference() -> None:
    with proxied("anthropic", answer_with_signature) as proxy:
        history: list[dict[str, Any]] = [say("One?"), {"role": "assistant", "content": "a"}, say("Two?")]
        proxy.post(PATHS["messages"], body_for("messages", history, stream=True))
        signed = json.loads(proxy.sent)["messages"]
        quote = {"role": "user", "content": 'What is [Document "spec.md": identical to the copy above]?'}
        proxy.post(PATHS["messages"], body_for("messages", [*history, think("s1"), quote], stream=True))
        assert json.loads(proxy.sent)["messages"] == [*signed, think("s1"), quote]


def test_counting_sends_no_field_for_lamella_and_notes_the_model() -> None:
    with proxied("anthropic") as proxy:
        body = {"messages": HI, "lamella": {"conversation": "beds"}}
        assert proxy.post("/v1/messages/count_tokens", body).json() == {"input_tokens": 42}
        assert json.loads(proxy.sent) == {"model": "scripted:tides", "messages": HI}
    with (
        serve(answer_usually, Loopback()) as upstream,
        running("memory:", None, model=f"openai-compatible:{upstream.url}/v1#tides") as server,
    ):
        body = {"model": "claude-opus-5-5", "messages": HI}
        counted = server.client.post("/v1/messages/count_tokens", json=body)
        assert counted.json()["input_tokens"] >= 1
        assert "claude-opus-5-5 is not configured" in counted.headers["x-lamella-note"]


def test_count_tokens_embeddings_stored_responses_and_head_reach_the_upstream() -> None:
    with proxied("anthropic") as proxy:
        counted = proxy.post("/v1/messages/count_tokens", {"model": "lamella", "messages": HI})
        assert counted.json() == {"input_tokens": 42}
        assert proxy.post("/v1/embeddings", {"model": "e", "input": "x"}).status_code == 404
        assert proxy.server.client.head("/").status_code == 200
    with proxied("openai") as proxy:
        data = b'{"model":"text-embedding-3-small", "input":["x"] }'
        assert proxy.post("/v1/embeddings", data).json()["data"][0]["embedding"] == [0.5]
        assert (proxy.sent, proxy.upstream.calls[-1].path) == (data, "/v1/embeddings")
        assert proxy.server.client.get("/v1/responses/resp_up1").json()["id"] == "resp_up1"
        assert proxy.upstream.calls[-1].method == "GET"


def test_usage_is_in_the_metrics() -> None:
    with proxied("openai") as proxy:
        for stream in (False, True):
            proxy.post(PATHS["chat"], body_for("chat", HI, stream=stream))
        metrics = proxy.server.client.get("/metrics").text
        assert 'lamella_tokens_total{kind="read"} 160.0' in metrics
        assert 'lamella_answers_total{ended="done"} 2.0' in metrics


def test_events_are_split_at_any_byte() -> None:
    stream = b"".join(message_events())

    def answer(_call: Call) -> Outcome:
        return Flow(chunks=[stream[at : at + 3] for at in range(0, len(stream), 3)])

    with proxied("anthropic", answer) as proxy:
        assert proxy.post(PATHS["messages"], body_for("messages", HI, stream=True)).content == stream
        assert sse("[DONE]") == b"data: [DONE]\n\n"
