"""Prepare histories in the message format of OpenAI's chat API, which gateways use for every provider."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lamella.attach import Tool
from lamella.core.messages import UNKNOWN_USAGE, ToolCall, Usage
from lamella.integrations.host_history import HostHistories, HostMessage, PreparedMessage

ChatMessage = Mapping[str, Any]
_REASONING_FIELDS = ("thinking_blocks", "reasoning_content", "provider_specific_fields")


class _UnreadableMessageError(Exception):
    """A message has a form that Lamella cannot move, so the messages are sent unchanged."""


def prepare_chat_messages(
    histories: HostHistories, messages: Sequence[ChatMessage], *, tools: Sequence[ChatMessage], model: str | None
) -> list[ChatMessage] | None:
    """Return the messages to send in place of these, or None if they are to be sent unchanged."""
    try:
        system, given, read = _read_messages(messages)
    except _UnreadableMessageError:
        histories.counts.unchanged += 1
        return None
    prepared = histories.prepare(read, system=system, tools=[_read_tool(one) for one in tools], model=model)
    if prepared is None:
        return None
    beginning: list[ChatMessage] = [one for one in messages if one.get("role") in ("system", "developer")]
    if prepared.added_to_system:
        beginning.append({"role": "system", "content": prepared.added_to_system.lstrip("\n")})
    return [*beginning, *(_build_message(one, given) for one in prepared.messages)]


def record_chat_reply(
    histories: HostHistories, messages: Sequence[ChatMessage], reply: ChatMessage, *, usage: Mapping[str, Any] | None
) -> None:
    """Record the answer to messages that were prepared, with the usage that the provider reported."""
    try:
        system, _, read = _read_messages(messages)
        answer = _read_message(reply)
    except _UnreadableMessageError:
        return
    histories.record_reply(read, answer, system=system, usage=_read_usage(usage))


def _read_messages(messages: Sequence[ChatMessage]) -> tuple[str, list[ChatMessage], list[HostMessage]]:
    """Return the system prompt, and the other messages as they were given and as they were read."""
    system = [_read_content(one)[0] for one in messages if one.get("role") in ("system", "developer")]
    given = [one for one in messages if one.get("role") not in ("system", "developer")]
    return "\n\n".join(system), given, [_read_message(one) for one in given]


def _read_message(message: ChatMessage) -> HostMessage:
    text, other = _read_content(message)
    role = message.get("role")
    if role == "user":
        return HostMessage(role="user", text=text, other_parts=other)
    if role == "tool":
        return HostMessage(role="tool", text=text, call_id=message.get("tool_call_id"), other_parts=other)
    if role != "assistant" or message.get("function_call") or message.get("audio"):
        raise _UnreadableMessageError(role)
    try:
        calls = tuple(
            ToolCall(id=one["id"], name=one["function"]["name"], arguments=one["function"]["arguments"])
            for one in message.get("tool_calls") or ()
        )
    except (KeyError, TypeError):
        raise _UnreadableMessageError(role) from None
    return HostMessage(
        role="assistant", text=text, calls=calls, signed=bool(message.get("thinking_blocks")), other_parts=other
    )


def _read_content(message: ChatMessage) -> tuple[str, str]:
    """Return the text of a message, and what identifies its other parts."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or "", ""
    texts = [one["text"] for one in content if one.get("type") == "text"]
    other = [one for one in content if one.get("type") != "text"]
    # Several parts stay parts, because a mark for the cache may be at one of them.
    is_marked = len(texts) > 1 or any("cache_control" in one for one in content)
    return "\n\n".join(texts), json.dumps(content if is_marked else other, default=repr) if other or is_marked else ""


def _read_tool(given: ChatMessage) -> Tool:
    function = given.get("function") or given
    return Tool(
        name=str(function.get("name") or function.get("type") or "tool"),
        description=str(function.get("description") or ""),
        parameters=function.get("parameters") or {"type": "object", "properties": {}},
    )


def _read_usage(usage: Mapping[str, Any] | None) -> Usage:
    if not usage or not usage.get("prompt_tokens"):
        return UNKNOWN_USAGE
    details = usage.get("prompt_tokens_details") or {}
    read = details.get("cached_tokens") or 0
    write = usage.get("cache_creation_input_tokens") or 0
    plain = max(usage["prompt_tokens"] - read - write, 0)
    return Usage(plain=plain, read=read, write=write, output=usage.get("completion_tokens"))


def _build_message(prepared: PreparedMessage, given: Sequence[ChatMessage]) -> ChatMessage:
    if prepared.position is None:
        return {"role": prepared.role, "content": prepared.text or ""}
    message = given[prepared.position]
    if prepared.without_reasoning:
        message = {name: value for name, value in message.items() if name not in _REASONING_FIELDS}
    return message if prepared.text is None else {**message, "content": prepared.text}
