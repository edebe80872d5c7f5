"""Prepare histories in the message format of OpenAI's chat API, which gateways use for every provider."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lamella.attach import Tool
from lamella.conversation.conversation import Conversation
from lamella.conversation.engine import Engine
from lamella.core.messages import UNKNOWN_USAGE, ToolCall, Usage
from lamella.integrations.host_history import (
    HostHistories,
    HostHistoryCounts,
    HostMessage,
    PreparedMessage,
    UnreadableHistoryError,
)
from lamella.schemas.ledger import LedgerTotals

__all__ = ["ChatHistories", "ChatMessage"]

ChatMessage = Mapping[str, Any]
_REASONING_FIELDS = ("thinking_blocks", "reasoning_content", "provider_specific_fields")


class ChatHistories:
    """The histories of a program that sends messages of OpenAI's chat API. ``prepare`` each request before it is sent.

    What was sent stays as it was, a repeated document becomes a reference, and a ledger counts the cost. Tool
    results are only cleared in requests that offer the tool ``recall``. ``settings`` are those of ``lamella.Conversation``.
    With an ``engine``, what is sent is stored as conversations named ``name-1``, ``name-2``, …
    """

    def __init__(self, *, engine: Engine | None = None, name: str = "chat", **settings: object) -> None:
        self._histories = HostHistories(engine=engine, name=name, settings=settings)

    @property
    def conversations(self) -> tuple[Conversation, ...]:
        """The conversations, the one used last at the end; their ledgers have the cost."""
        return self._histories.conversations

    @property
    def counts(self) -> HostHistoryCounts:
        """How many requests were prepared, and how many were sent unchanged."""
        return self._histories.counts

    def totals(self) -> LedgerTotals:
        """Return the sums of the ledgers: tokens, and money where the prices are known."""
        return self._histories.totals()

    def prepare(
        self, messages: Sequence[ChatMessage], *, tools: Sequence[ChatMessage] = (), model: str | None = None
    ) -> list[ChatMessage]:
        """Return the messages to send instead of these; if they cannot be prepared, return these."""
        converted = self._histories.convert_request(
            lambda: (*_read_messages(messages), [_read_tool(one) for one in tools])
        )
        if converted is None:
            return list(messages)
        system, given, read, read_tools = converted
        prepared = self._histories.prepare(read, system=system, tools=read_tools, model=model)
        if prepared is None:
            return list(messages)
        beginning: list[ChatMessage] = [one for one in messages if one.get("role") in ("system", "developer")]
        if prepared.added_to_system:
            beginning.append({"role": "system", "content": prepared.added_to_system.lstrip("\n")})
        return [*beginning, *(_build_message(one, given) for one in prepared.messages)]

    def record_reply(
        self, messages: Sequence[ChatMessage], reply: ChatMessage, *, usage: Mapping[str, Any] | None = None
    ) -> None:
        """Record the answer to these messages, as you gave them to ``prepare``, with the usage that was reported."""
        converted = self._histories.convert_reply(
            lambda: (*_read_messages(messages), _read_message(reply), _read_usage(usage))
        )
        if converted is not None:
            system, _, read, answer, reported = converted
            self._histories.record_reply(read, answer, system=system, usage=reported)

    async def recall(
        self, query: str, *, call_id: str | None = None, limit: int | None = None, start: int | None = None
    ) -> str:
        """Return the answer to a call of the tool ``recall``."""
        return await self._histories.recall(query, call_id=call_id, limit=limit, start=start)

    @property
    def recall_tool(self) -> ChatMessage:
        """The tool ``recall`` as the API takes it."""
        tool = self._histories.recall_tool
        function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
        return {"type": "function", "function": function}


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
        raise UnreadableHistoryError(role)
    try:
        calls = tuple(
            ToolCall(id=one["id"], name=one["function"]["name"], arguments=one["function"]["arguments"])
            for one in message.get("tool_calls") or ()
        )
    except (KeyError, TypeError):
        raise UnreadableHistoryError(role) from None
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
