"""Histories in the message format of OpenAI's chat API: what is sent in place of them."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from lamella.integrations.chat_messages import ChatHistories, ChatMessage

_DOCUMENT = f'<document path="plan.md">\n{"The bridge opens at noon. " * 20}\n</document>'
_READ: ChatMessage = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}


def _tasks(count: int) -> list[ChatMessage]:
    messages: list[ChatMessage] = [{"role": "system", "content": "You find files."}]
    for task in range(count):
        messages.append({"role": "user", "content": f"Task {task}?"})
        for number in range(4):
            call = {"id": f"{task}-{number}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            text = f"File {task}-{number} says: " + "the bridge opens at noon. " * 500
            messages.append({"role": "tool", "tool_call_id": f"{task}-{number}", "content": text})
        messages.append({"role": "assistant", "content": "It is there."})
    return [*messages, {"role": "user", "content": "And now?"}]


def _play(histories: ChatHistories, messages: Sequence[ChatMessage], tools: Sequence[ChatMessage]) -> list[ChatMessage]:
    sent: list[ChatMessage] = []
    for place, message in enumerate(messages):
        if message["role"] == "assistant":
            sent = histories.prepare(messages[:place], tools=tools)
            usage = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 60}}
            histories.record_reply(messages[:place], message, usage=usage)
    return histories.prepare(messages, tools=tools) or sent


def test_a_repeated_document_becomes_a_reference() -> None:
    messages: list[ChatMessage] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": f"{_DOCUMENT}\nWhen?"},
        {"role": "assistant", "content": "At noon."},
        {"role": "user", "content": f"{_DOCUMENT}\nSure?"},
    ]
    sent = ChatHistories().prepare(messages)
    reference = '[Document "plan.md": identical to the copy above]\nSure?'
    assert sent == [*messages[:3], {"role": "user", "content": reference}]


def test_results_are_cleared_only_where_recall_is_offered() -> None:
    messages = _tasks(4)
    assert _play(ChatHistories(window=200_000), messages, [_READ]) == messages
    histories = ChatHistories(window=200_000)
    sent = _play(histories, messages, [_READ, histories.recall_tool])
    assert sum(len(str(one)) for one in sent) < sum(len(str(one)) for one in messages) / 2
    assert [one["role"] for one in sent] == [one["role"] for one in messages]
    answer = asyncio.run(histories.recall("File 0-0", start=0))
    assert "File 0-0 says: the bridge opens at noon." in answer


def test_usage_is_in_the_totals() -> None:
    histories = ChatHistories(model="openai:gpt-5")
    _play(histories, _tasks(1), [_READ])
    totals = histories.totals()
    assert (totals.calls, totals.read_tokens, totals.plain_tokens, totals.output_tokens) == (5, 300, 200, 25)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "function", "name": "f", "content": "x"},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "custom", "custom": {}}]},
        {"content": "no role"},
    ],
)
def test_messages_of_an_unknown_form_are_sent_unchanged(message: ChatMessage) -> None:
    histories = ChatHistories()
    messages = [{"role": "user", "content": "Hi"}, message, {"role": "user", "content": "And?"}]
    assert histories.prepare(messages) == messages
    assert histories.counts.unchanged == 1


def test_marked_and_pictured_parts_stay_as_they_are() -> None:
    marked: Any = [{"type": "text", "text": "Long rules.", "cache_control": {"type": "ephemeral"}}]
    picture: Any = [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": "data:,"}}]
    messages: list[ChatMessage] = [
        {"role": "user", "content": marked},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": picture},
    ]
    assert ChatHistories().prepare(messages) == messages
