"""A middleware for agents of LangChain and LangGraph: Lamella prepares the messages of each model call.

from langchain.agents import create_agent
from lamella.integrations.langchain import LamellaMiddleware

agent = create_agent("anthropic:claude-opus-5-5", tools=[...], middleware=[LamellaMiddleware(window=200_000)])

The state of the agent does not change. Only what is sent does.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.tools import ToolRuntime
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from lamella.attach import Tool
from lamella.conversation.conversation import Conversation
from lamella.conversation.engine import Engine
from lamella.core.messages import ToolCall, Usage
from lamella.integrations.host_history import (
    HostHistories,
    HostHistoryCounts,
    HostMessage,
    PreparedMessage,
    UnreadableHistoryError,
    warn_of_host_compaction,
)
from lamella.schemas.ledger import LedgerTotals

__all__ = ["LamellaMiddleware"]

_REASONING_TYPES = ("thinking", "redacted_thinking", "reasoning")


class LamellaMiddleware(AgentMiddleware[Any, Any, Any]):
    """Keeps what was sent, clears unused tool results, refers to repeated documents and adds a ``recall`` tool.

    ``settings`` are those of ``lamella.Conversation``, for example ``window=200_000`` or ``compact_at=0.7``. With an
    ``engine``, the runs are stored as conversations named ``name-1``, ``name-2``, … Otherwise they are in memory.
    """

    def __init__(self, *, engine: Engine | None = None, name: str = "agent", **settings: object) -> None:
        super().__init__()
        self._histories = HostHistories(engine=engine, name=name, settings=settings)
        self.tools = [self._make_recall_tool()]

    @property
    def conversations(self) -> tuple[Conversation, ...]:
        """The conversations of the runs, the one used last at the end; their ledgers have the cost."""
        return self._histories.conversations

    @property
    def counts(self) -> HostHistoryCounts:
        """How many requests were prepared, and how many were sent unchanged."""
        return self._histories.counts

    def totals(self) -> LedgerTotals:
        """Return the sums of the ledgers: tokens, and money where the prices are known."""
        return self._histories.totals()

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        messages, prepared = self._prepare(request)
        response = handler(prepared)
        self._record(messages, request, response)
        return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        messages, prepared = self._prepare(request)
        response = await handler(prepared)
        self._record(messages, request, response)
        return response

    def _make_recall_tool(self) -> BaseTool:
        definition = self._histories.recall_tool

        async def recall(query: str, runtime: ToolRuntime, limit: int | None = None, start: int | None = None) -> str:
            return await self._histories.recall(query, call_id=runtime.tool_call_id, limit=limit, start=start)

        def recall_now(query: str, runtime: ToolRuntime, limit: int | None = None, start: int | None = None) -> str:
            return asyncio.run(recall(query, runtime, limit, start))

        return StructuredTool.from_function(
            recall_now, coroutine=recall, name=definition.name, description=definition.description
        )

    def _prepare(self, request: ModelRequest[Any]) -> tuple[list[HostMessage] | None, ModelRequest[Any]]:
        """Return what was read, or None if the request stays unchanged, and the request to send."""
        converted = self._histories.convert_request(
            lambda: (
                [_read_message(one) for one in request.messages],
                [_read_tool(one) for one in request.tools],
                _read_model_name(request),
            )
        )
        if converted is None:
            return None, request
        messages, tools, model = converted
        prepared = self._histories.prepare(messages, system=_read_system(request), tools=tools, model=model)
        if prepared is None:
            return None, request
        system = request.system_message
        if prepared.added_to_system:
            system = _extend_system(system, prepared.added_to_system)
        built = [_build_message(one, request.messages) for one in prepared.messages]
        return messages, request.override(messages=built, system_message=system)

    def _record(
        self, messages: Sequence[HostMessage] | None, request: ModelRequest[Any], response: ModelResponse[Any]
    ) -> None:
        reply = next((one for one in response.result if isinstance(one, AIMessage)), None)
        if messages is None or reply is None:
            return
        converted = self._histories.convert_reply(lambda: (_read_message(reply), _read_usage(reply)))
        if converted is not None:
            answer, usage = converted
            self._histories.record_reply(messages, answer, system=_read_system(request), usage=usage)


def _read_system(request: ModelRequest[Any]) -> str:
    return str(request.system_message.text) if request.system_message is not None else ""


def _extend_system(system: SystemMessage | None, added: str) -> SystemMessage:
    if system is None or not system.content:
        return SystemMessage(added.lstrip("\n"))
    if isinstance(system.content, str):
        return SystemMessage(system.content + added)
    return SystemMessage([*system.content, {"type": "text", "text": added}])


def _read_tool(given: BaseTool | Mapping[str, Any]) -> Tool:
    function = convert_to_openai_tool(given)
    function = function.get("function", function)
    return Tool(
        name=str(function.get("name") or function.get("type")),
        description=str(function.get("description") or ""),
        parameters=function.get("parameters") or {"type": "object", "properties": {}},
    )


def _read_model_name(request: ModelRequest[Any]) -> str | None:
    described = request.model._get_ls_params()  # the only way in which every chat model says what it is
    provider, name = described.get("ls_provider"), described.get("ls_model_name")
    provider = {"google_genai": "gemini", "google_vertexai": "gemini"}.get(provider or "", provider)
    return f"{provider}:{name}" if provider and name else None


def _read_message(message: BaseMessage) -> HostMessage:
    text, other = _read_content(message)
    if isinstance(message, HumanMessage):
        if message.additional_kwargs.get("lc_source") == "summarization":
            warn_of_host_compaction()
            raise UnreadableHistoryError
        return HostMessage(role="user", text=text, other_parts=other)
    if isinstance(message, ToolMessage):
        if message.response_metadata.get("context_editing", {}).get("cleared"):
            warn_of_host_compaction()
            raise UnreadableHistoryError
        return HostMessage(
            role="tool",
            text=text,
            call_id=message.tool_call_id,
            failed=message.status == "error",
            other_parts=other,
        )
    if isinstance(message, AIMessage) and not message.invalid_tool_calls:
        calls = tuple(
            ToolCall(id=one["id"] or "", name=one["name"], arguments=json.dumps(one["args"], ensure_ascii=False))
            for one in message.tool_calls
        )
        return HostMessage(
            role="assistant", text=text, calls=calls, signed=_has_signed_reasoning(message), other_parts=other
        )
    raise UnreadableHistoryError


def _read_content(message: BaseMessage) -> tuple[str, str]:
    """Return the text of a message, and what identifies its other parts."""
    if isinstance(message.content, str):
        return message.content, ""
    known = ("text", "tool_use", "tool_call", "function_call", *_REASONING_TYPES)
    other = [one for one in message.content if not isinstance(one, str) and one.get("type") not in known]
    return str(message.text), json.dumps(other, default=repr) if other else ""


def _has_signed_reasoning(message: AIMessage) -> bool:
    parts = [] if isinstance(message.content, str) else message.content
    return any(not isinstance(one, str) and one.get("type") in _REASONING_TYPES for one in parts)


def _read_usage(reply: AIMessage) -> Usage:
    usage = reply.usage_metadata
    if not usage:
        return Usage()
    details = usage.get("input_token_details") or {}
    read, write = details.get("cache_read") or 0, details.get("cache_creation") or 0
    plain = max(usage["input_tokens"] - read - write, 0)
    return Usage(plain=plain, read=read, write=write, output=usage["output_tokens"])


def _build_message(prepared: PreparedMessage, messages: Sequence[AnyMessage]) -> AnyMessage:
    source = messages[prepared.position] if prepared.position is not None else None
    if source is None:
        (message,) = convert_to_messages([(prepared.role, prepared.text or "")])
        return message  # type: ignore[return-value]  # a role of these gives one of the types of AnyMessage
    if isinstance(source, AIMessage) and prepared.without_reasoning and not isinstance(source.content, str):
        kept = [one for one in source.content if isinstance(one, str) or one.get("type") not in _REASONING_TYPES]
        source = source.model_copy(update={"content": kept})
    return source if prepared.text is None else source.model_copy(update={"content": prepared.text})
