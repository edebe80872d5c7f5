"""The client sends the whole conversation: nothing of another request ever reaches the upstream."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.server.upstreams import PATHS, Proxied, body_for, proxied

KINDS = [
    ("messages", "anthropic"),
    ("chat", "openai"),
    ("responses", "openai"),
    ("chat", "anthropic"),
    ("messages", "compatible"),
    ("responses", "anthropic"),
]
SPEC = "The sluice opens at noon, and closes when the heron leaves. " * 8
DOCUMENT = f'<document path="spec.md">\n{SPEC}\n</document>'
Messages = list[dict[str, Any]]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def sent_texts(proxy: Proxied) -> list[tuple[str, str]]:
    """The role and the text of each message that the upstream got last."""
    body = json.loads(proxy.sent)
    return [(one["role"], _text_of(one["content"])) for one in body.get("messages") or body["input"]]


def _text_of(content: object) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)  # type: ignore[attr-defined]


@pytest.fixture(params=KINDS, ids=lambda pair: f"{pair[0]}-to-{pair[1]}")
def chat(request: pytest.FixtureRequest) -> Any:  # noqa: ANN401 - a generator fixture
    wire, kind = request.param
    with proxied(kind) as proxy:

        def ask(messages: Messages, **headers: str) -> list[tuple[str, str]]:
            answer = proxy.post(PATHS[wire], body_for(wire, messages), **headers)
            assert answer.status_code == 200, answer.text
            return sent_texts(proxy)

        ask.proxy = proxy  # type: ignore[attr-defined]
        ask.wire = wire  # type: ignore[attr-defined]
        yield ask


def plain(messages: Messages) -> list[tuple[str, str]]:
    return [(one["role"], one["content"]) for one in messages]


def test_chats_with_same_beginning_share_nothing_else(chat: Any) -> None:  # noqa: ANN401
    chat([user("hi"), assistant("a"), user("PIN 999")])
    second = [user("hi"), assistant("a"), user("bees"), assistant("ech"), user("go on")]
    assert chat(second) == plain(second)
    assert b"999" not in chat.proxy.sent


def test_redacted_turn_stays_redacted(chat: Any) -> None:  # noqa: ANN401
    chat([user("u1"), assistant("a1"), user("card 4111"), assistant("ok"), user("more")])
    redacted = [user("u1"), assistant("a1"), user("card [R]"), assistant("ok"), user("more")]
    assert chat(redacted) == plain(redacted)


def test_forty_identical_first_requests_at_once_are_all_answered(chat: Any) -> None:  # noqa: ANN401
    body = body_for(chat.wire, [user("hi")])
    with ThreadPoolExecutor(40) as threads:
        answers = list(threads.map(lambda _: chat.proxy.post(PATHS[chat.wire], body), range(40)))
    assert [answer.text for answer in answers if answer.status_code != 200] == []
    assert len(chat.proxy.upstream.calls) == 40


def test_compacted_history_of_same_session_is_sent_unchanged(chat: Any) -> None:  # noqa: ANN401
    session = {"x_claude_code_session_id": "s1", "x_lamella_conversation": "work"}
    chat([user("one"), assistant("first"), user("two")], **session)
    compacted = [user("Summary: one, two."), assistant("I see."), user("three")]
    assert chat(compacted, **session) == plain(compacted)


def test_repeated_document_is_sent_once_and_a_redacted_one_is_whole(chat: Any) -> None:  # noqa: ANN401
    history = [user(f"{DOCUMENT}\nWhen?"), assistant("a1"), user(f"{DOCUMENT}\nWhy?")]
    sent = chat(history)
    assert sent[0] == ("user", f"{DOCUMENT}\nWhen?")
    assert sent[2] == ("user", '[Document "spec.md": identical to the copy above]\nWhy?')
    redacted = [user(f"{DOCUMENT.replace('noon', '[R]')}\nWhen?"), *history[1:]]
    assert chat(redacted) == plain(redacted)


def test_shared_questions_do_not_join_two_users(chat: Any) -> None:  # noqa: ANN401
    faq = [user("When do you open?"), assistant("At nine.")]
    chat([*faq, user("My name is Ana.")], x_lamella_conversation="ana")
    assert chat([*faq, user("Who am I?")], x_lamella_conversation="ben") == plain([*faq, user("Who am I?")])


TOOL_RESULTS = {
    "messages": lambda text: [
        user("Look."),
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "read", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": text}]},
    ],
    "chat": lambda text: [
        user("Look."),
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "read", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "t1", "content": text},
    ],
    "responses": lambda text: [
        user("Look."),
        {"type": "function_call", "call_id": "t1", "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "t1", "output": text},
    ],
}


@pytest.mark.parametrize(("wire", "kind"), KINDS)
def test_cleared_tool_result_stays_cleared(wire: str, kind: str) -> None:
    with proxied(kind) as proxy:
        for text in ("row 1 SECRET", "[cleared]"):
            answer = proxy.post(PATHS[wire], body_for(wire, TOOL_RESULTS[wire](text)))
            assert answer.status_code == 200, answer.text
        assert b"[cleared]" in proxy.sent
        assert b"SECRET" not in proxy.sent


def test_label_is_returned_and_stores_no_conversation() -> None:
    with proxied("openai") as proxy:
        named = proxy.post(PATHS["chat"], body_for("chat", [user("hi")]), x_lamella_conversation="g r")
        assert named.headers["x-lamella-conversation"] == "g%20r"
        option = proxy.post(PATHS["chat"], body_for("chat", [user("hi")], lamella={"conversation": "beds"}))
        assert option.headers["x-lamella-conversation"] == "beds"
        assert b"lamella" not in proxy.sent.replace(b'"scripted:tides"', b"")
        assert proxy.server.client.get("/v1/conversations").json()["chats"] == []
