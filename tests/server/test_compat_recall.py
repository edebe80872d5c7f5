"""Recall for clients that shorten their own history: only if switched on, and only what the same conversation left out."""

import json
from base64 import b64encode
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from zlib import compress

import anthropic
import openai
import pytest
from tests.server.running import running
from tests.server.upstreams import (
    PATHS,
    Proxied,
    body_for,
    chat_body,
    chat_events,
    message_body,
    message_events,
    proxied,
    response_body,
    response_events,
)
from tests.wire.serving import Call, Flow, Outcome, json_answer

from lamella import ToolCall
from lamella.clocks import SystemClock
from lamella.server.compat.recall import RecallStore, SentMessage, _make_row_name, find_withdrawn_hashes
from lamella.stores.memory import InMemoryStore
from lamella.testing import ScriptedProvider, ScriptedReply

Json = dict[str, Any]
ON = {"recall": True}
TOOL = "lamella_recall"
PAIRS = [
    ("messages", "anthropic"),
    ("chat", "openai"),
    ("chat", "compatible"),
    ("responses", "openai"),
    ("messages", "compatible"),
    ("chat", "anthropic"),
    ("responses", "anthropic"),
]
ARGUMENTS = {"query": "sluice code"}


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def assistant(text: str) -> Json:
    return {"role": "assistant", "content": text}


LONG = [
    user("The sluice code is 4711."),
    assistant("Noted."),
    user("And the heron?"),
    assistant("It left."),
    user("Go on."),
]
SHORT = [user("We talked about the garden."), assistant("It left."), user("Which code was it?")]
GONE = "The sluice code is 4711."


def has_tool(call: Call) -> bool:
    return f'"name":"{TOOL}"'.encode() in call.raw.replace(b'": ', b'":')


def results(call: Call) -> str:
    """The texts of results in a request."""
    return json.dumps([one for one in call.body.get("messages") or call.body["input"] if "tool_result" in str(one)
                       or one.get("role") == "tool" or one.get("type") == "function_call_output"], ensure_ascii=False)  # fmt: skip


def calls_recall(call: Call) -> Outcome:
    """Call the tool once if it is there, with some text before and after; think before each."""
    is_first = has_tool(call) and "call1" not in call.raw.decode()
    streamed = bool(call.body.get("stream"))
    if "/messages" in call.path:
        thinking: Json = {"type": "thinking", "thinking": "hm", "signature": "sig1" if is_first else "sig2"}
        shown = {"type": "text", "text": "Let me look. " if is_first else "It is 4711."}
        blocks: list[Json] = [
            thinking,
            shown,
            *([{"type": "tool_use", "id": "call1", "name": TOOL, "input": ARGUMENTS}] if is_first else []),
        ]
        stop = "tool_use" if is_first else "end_turn"
        made = message_events(*blocks, stop=stop)
        return Flow(chunks=made) if streamed else json_answer(message_body(*blocks, stop=stop))
    if "/chat/" in call.path:
        text = "Let me look. " if is_first else "It is 4711."
        wanted = [{"id": "call1", "type": "function", "function": {"name": TOOL, "arguments": json.dumps(ARGUMENTS)}}]
        if streamed:
            return Flow(
                chunks=chat_events(text, calls=wanted if is_first else [], finish="tool_calls" if is_first else "stop")
            )
        body = chat_body(text)
        if is_first:
            body["choices"][0]["message"]["tool_calls"] = wanted
            body["choices"][0]["finish_reason"] = "tool_calls"
        return json_answer(body)
    reasoning: Json = {"type": "reasoning", "id": "r1" if is_first else "r2", "summary": [], "encrypted_content": "e"}
    said: Json = {
        "type": "message", "id": "m1" if is_first else "m2", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "Let me look. " if is_first else "It is 4711.", "annotations": []}],
    }  # fmt: skip
    wants = {"type": "function_call", "id": "f1", "call_id": "call1", "name": TOOL, "arguments": json.dumps(ARGUMENTS)}
    items: list[Json] = [reasoning, said, *([wants] if is_first else [])]
    return Flow(chunks=response_events(*items)) if streamed else json_answer(response_body(*items))


def ask(proxy: Proxied, wire: str, messages: Sequence[Json], *, name: str = "g1", **more: Any) -> Any:  # noqa: ANN401
    answer = proxy.post(PATHS[wire], body_for(wire, messages, **more), x_lamella_conversation=name)
    assert answer.status_code == 200, answer.text
    return answer


def ask_sdk(proxy: Proxied, wire: str, messages: Any, *, stream: bool) -> tuple[str, str, int]:  # noqa: ANN401
    """The text, the end and the output tokens of an answer, as an SDK reads them."""
    headers = {"x-lamella-conversation": "g1"}
    if wire == "messages":
        with anthropic.Anthropic(
            base_url=proxy.server.url, api_key="x", max_retries=0, default_headers=headers
        ) as client:
            given: Any = {"model": "lamella", "max_tokens": 50, "messages": messages}
            if stream:
                with client.messages.stream(**given) as events:
                    made: Any = events.get_final_message()
            else:
                made = client.messages.create(**given)
        signatures = [one.signature for one in made.content if one.type == "thinking"]
        assert "sig2" not in signatures, "it is bound to a call that the client does not have"
        assert all(one.type != "tool_use" for one in made.content)
        return (
            "".join(one.text for one in made.content if one.type == "text"),
            made.stop_reason,
            made.usage.output_tokens,
        )
    with openai.OpenAI(base_url=f"{proxy.server.url}/v1", api_key="x", max_retries=0, default_headers=headers) as sdk:
        if wire == "responses":
            if stream:
                with sdk.responses.stream(model="lamella", input=messages, store=False) as events:
                    numbers = [event.sequence_number for event in events]
                    assert numbers == list(range(len(numbers)))
                    made = events.get_final_response()
            else:
                made = sdk.responses.create(model="lamella", input=messages, store=False)
            assert all(one.type != "function_call" for one in made.output)
            return made.output_text, made.status, made.usage.output_tokens
        if stream:
            options: Any = {"include_usage": True}
            with sdk.chat.completions.stream(model="lamella", messages=messages, stream_options=options) as chunks:
                made = chunks.get_final_completion()
        else:
            made = sdk.chat.completions.create(model="lamella", messages=messages)
        assert not made.choices[0].message.tool_calls
        return made.choices[0].message.content, made.choices[0].finish_reason, made.usage.completion_tokens


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("wire", "kind"), PAIRS)
def test_recall_is_answered_and_the_client_never_sees_the_call(wire: str, kind: str, *, stream: bool) -> None:
    with proxied(kind, calls_recall, serve_settings=ON) as proxy:
        ask(proxy, wire, LONG)
        assert not has_tool(proxy.upstream.calls[0])
        text, end, tokens = ask_sdk(proxy, wire, SHORT, stream=stream)
        _, first, second = proxy.upstream.calls
        assert (has_tool(first), has_tool(second), GONE in results(second)) == (True, True, True)
        assert text == "Let me look. It is 4711."
        assert end in ("end_turn", "stop", "completed")
        assert tokens == 14, "the tokens of both rounds"


@pytest.mark.parametrize("stream", [False, True])
def test_recall_works_with_providers_without_such_an_api(*, stream: bool) -> None:
    call = ToolCall(id="c1", name=TOOL, arguments=json.dumps(ARGUMENTS))
    script = ScriptedProvider("ok", ScriptedReply(text="I look. ", calls=(call,)), "It is 4711.")
    with running("memory:", script, serve=ON) as server:
        for messages in (LONG, SHORT):
            body = body_for("chat", messages, stream=stream and messages is SHORT)
            answer = server.client.post(PATHS["chat"], json=body, headers={"x-lamella-conversation": "g1"})
            assert answer.status_code == 200, answer.text
        assert (TOOL in answer.text, "4711" in answer.text) == (False, True)
        assert GONE in script.requests[2].messages[-1].text


@pytest.mark.parametrize(("wire", "kind"), PAIRS)
def test_nothing_is_kept_or_offered_unless_it_is_switched_on(wire: str, kind: str) -> None:
    with proxied(kind, calls_recall) as proxy:
        for messages in (LONG, SHORT):
            ask(proxy, wire, messages)
        assert not any(has_tool(call) for call in proxy.upstream.calls)
        assert len(proxy.upstream.calls) == 2


def test_other_conversations_and_owners_find_nothing() -> None:
    with proxied("openai", calls_recall, serve_settings=ON) as proxy:
        ask(proxy, "chat", LONG)
        ask(proxy, "chat", SHORT, name="g2")
        proxy.post(PATHS["chat"], body_for("chat", SHORT, prompt_cache_key="g1"))
        proxy.post(PATHS["chat"], body_for("chat", SHORT))
        assert not any(has_tool(call) for call in proxy.upstream.calls)


def test_client_that_declines_is_forgotten() -> None:
    with proxied("openai", calls_recall, serve_settings=ON) as proxy:
        ask(proxy, "chat", LONG)
        ask(proxy, "chat", SHORT, lamella={"recall": False})
        ask(proxy, "chat", SHORT)
        assert not any(has_tool(call) for call in proxy.upstream.calls)


@pytest.mark.parametrize(
    "changed",
    [
        [user("The sluice code is [R]."), *LONG[1:]],
        [user("[removed]"), *LONG[1:], assistant("Yes."), user("So?")],
        [*LONG[:4], user("Go on, but shorter.")],
        [user("The sluice code is [R].")],
        [*LONG[:2], user("Another question.")],
    ],
)
def test_changed_or_withdrawn_message_cannot_be_recalled(changed: list[Json]) -> None:
    with proxied("openai", calls_recall, serve_settings=ON) as proxy:
        ask(proxy, "chat", LONG)
        ask(proxy, "chat", changed)
        ask(proxy, "chat", changed)
        told = [call for call in proxy.upstream.calls if "call1" in call.raw.decode()]
        kept = [one["content"] for one in changed]
        assert GONE in kept or not any(GONE in results(call) for call in told)
        assert not any("Go on." in results(call) for call in told)


@pytest.mark.parametrize("redacted", ["The sluice code is [R].", "[removed]"])
def test_other_requests_in_between_do_not_hide_a_redaction(redacted: str) -> None:
    with proxied("openai", calls_recall, serve_settings=ON) as proxy:
        ask(proxy, "chat", LONG)
        for number in range(6):
            ask(proxy, "chat", [user(f"Write a title, attempt {number}.")])
            ask(proxy, "chat", LONG)
        ask(proxy, "chat", [user("Write a title.")])
        ask(proxy, "chat", [user(redacted), *LONG[1:], assistant("Yes."), user("So?")])
        ask(proxy, "chat", SHORT)
        told = [results(call) for call in proxy.upstream.calls[-3:]]
        assert any("Which code" in call.raw.decode() for call in proxy.upstream.calls[-3:])
        assert not any(GONE in one for one in told)


def test_row_of_an_earlier_version_can_be_read() -> None:
    table, clock = InMemoryStore().shared_table, SystemClock()
    store = RecallStore(table, clock=clock)
    old = {"order": ["h1"], "messages": [["h1", "user", "The sluice code is 4711."]]}
    row = b64encode(compress(json.dumps(old).encode())).decode()
    table.set(_make_row_name("", "g1"), row, at=clock.now(), expires_at=clock.now() + timedelta(days=1))
    found = store.record_and_list_left_out(
        "", "g1", [SentMessage("h2", "user", "Summary."), SentMessage("h3", "user", "Hm?")]
    )
    assert found.messages == ()
    assert store.record_and_list_left_out("", "g1", [SentMessage("h4", "user", "?")]).messages[0].hash == "h2"


def test_tool_is_not_added_behind_signatures_that_were_made_without_it() -> None:
    thinking = {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s0"}]}
    with proxied("anthropic", calls_recall, serve_settings=ON) as proxy:
        ask(proxy, "messages", LONG)
        ask(proxy, "messages", [SHORT[0], thinking, SHORT[2]])
        assert not has_tool(proxy.upstream.calls[-1])
        # The answer to a request with the tool is signed behind the tool, so it stays.
        said = ask(proxy, "messages", SHORT).json()["content"]
        ask(proxy, "messages", [*SHORT, {"role": "assistant", "content": said}, user("Thanks.")])
        assert has_tool(proxy.upstream.calls[-1])


def test_model_that_searches_for_ever_is_stopped() -> None:
    def answer(call: Call) -> Outcome:
        blocks = [{"type": "tool_use", "id": f"c{len(call.raw)}", "name": TOOL, "input": ARGUMENTS}]
        return json_answer(
            message_body(*(blocks if has_tool(call) else ()), stop="tool_use" if has_tool(call) else "end_turn")
        )

    with proxied("anthropic", answer, serve_settings=ON) as proxy:
        ask(proxy, "messages", LONG)
        ended = ask(proxy, "messages", SHORT).json()
        assert (ended["content"], ended["stop_reason"]) == ([], "end_turn")
        assert len(proxy.upstream.calls) == 9


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("wire", "kind"), PAIRS)
def test_error_of_a_later_round_keeps_its_status_or_is_an_event(wire: str, kind: str, *, stream: bool) -> None:
    def answer(call: Call) -> Outcome:
        if "call1" in call.raw.decode():
            return json_answer({"error": {"type": "overloaded_error", "message": "Overloaded"}}, status=529)
        return calls_recall(call)

    with proxied(kind, answer, serve_settings=ON) as proxy:
        ask(proxy, wire, LONG)
        store = {"store": False} if wire == "responses" else {}
        failed = proxy.post(PATHS[wire], body_for(wire, SHORT, stream=stream, **store), x_lamella_conversation="g1")
        assert failed.status_code == (200 if stream else 529), failed.text
        assert "Overloaded" in failed.text
        assert TOOL not in failed.text
        assert "[DONE]" not in failed.text


def test_sliding_window_and_summary_leave_messages_out_and_edits_withdraw_them() -> None:
    def said(*texts: str) -> list[SentMessage]:
        return [SentMessage(text, "user" if at % 2 == 0 else "assistant", text) for at, text in enumerate(texts)]

    before = said("one", "two", "three", "four", "five")
    assert find_withdrawn_hashes(before, said("three", "four", "five", "six", "seven")) == set()
    assert find_withdrawn_hashes(before, said("summary", "four", "five", "six")) == set()
    assert find_withdrawn_hashes(before, said("summary")) == set()
    assert find_withdrawn_hashes(before, said("one", "two", "3")) == {"three", "four", "five"}
    assert find_withdrawn_hashes(before, said("1", "two", "three", "four", "five", "six")) == {"one"}
