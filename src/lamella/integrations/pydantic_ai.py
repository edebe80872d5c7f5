"""A capability for agents of pydantic-ai: Lamella prepares the messages of each model request.

from pydantic_ai import Agent
from lamella.integrations.pydantic_ai import LamellaCapability

agent = Agent("anthropic:claude-opus-5-5", capabilities=[LamellaCapability(window=200_000)])

The message history of the agent does not change. Only what is sent does.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pydantic_ai import FunctionToolset, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    CachePoint,
    CompactionPart,
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.toolsets import AgentToolset
from pydantic_ai.usage import RequestUsage

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

__all__ = ["LamellaCapability"]


class _Place(NamedTuple):
    """Where a host message is: the index of the message of pydantic-ai, and of its part in a request."""

    message: int
    part: int | None


class _ReadHistory(NamedTuple):
    """The messages of pydantic-ai as ``HostMessage``, with their places and the system prompt."""

    messages: list[HostMessage]
    places: list[_Place]
    system: str


class LamellaCapability(AbstractCapability[Any]):
    """Keeps what was sent, clears unused tool results, refers to repeated documents and adds a ``recall`` tool.

    ``settings`` are those of ``lamella.Conversation``, for example ``window=200_000`` or ``compact_at=0.7``. With an
    ``engine``, the runs are stored as conversations named ``name-1``, ``name-2``, … Otherwise they are in memory.
    """

    def __init__(self, *, engine: Engine | None = None, name: str = "agent", **settings: object) -> None:
        super().__init__()
        self._histories = HostHistories(engine=engine, name=name, settings=settings)
        # What was read of the last request of each run, to record its answer.
        self._read_by_run: dict[str, _ReadHistory] = {}

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

    def get_toolset(self) -> AgentToolset[Any]:
        toolset: FunctionToolset[Any] = FunctionToolset()
        definition = self._histories.recall_tool

        async def recall(ctx: RunContext[Any], query: str, limit: int | None = None, start: int | None = None) -> str:
            return await self._histories.recall(query, call_id=ctx.tool_call_id, limit=limit, start=start)

        toolset.add_function(recall, name=definition.name, description=definition.description)
        return toolset

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        self._read_by_run.pop(_run_id(ctx), None)
        parameters = request_context.model_request_parameters
        read = self._histories.convert_request(
            lambda: _read_history(request_context.messages, parameters.instruction_parts or ())
        )
        if read is None:
            return request_context
        tools = [
            Tool(name=one.name, description=one.description or "", parameters=one.parameters_json_schema)
            for one in (*parameters.function_tools, *parameters.output_tools)
        ]
        prepared = self._histories.prepare(
            read.messages, system=read.system, tools=tools, model=_read_model_name(request_context)
        )
        if prepared is None:
            return request_context
        self._read_by_run[_run_id(ctx)] = read
        return replace(
            request_context,
            messages=_build_messages(prepared.messages, read.places, request_context.messages),
            model_request_parameters=parameters
            if not prepared.added_to_system
            else replace(
                parameters,
                instruction_parts=[
                    *(parameters.instruction_parts or ()),
                    InstructionPart(content=prepared.added_to_system.strip("\n"), dynamic=True),
                ],
            ),
        )

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        read = self._read_by_run.pop(_run_id(ctx), None)
        if read is None:
            return response
        converted = self._histories.convert_reply(lambda: (_read_response(response), _read_usage(response.usage)))
        if converted is not None:
            answer, usage = converted
            self._histories.record_reply(read.messages, answer, system=read.system, usage=usage)
        return response


def _run_id(ctx: RunContext[Any]) -> str:
    return ctx.run_id or ""


def _read_model_name(request_context: ModelRequestContext) -> str:
    model = request_context.model
    provider = {"google-gla": "gemini", "google-vertex": "gemini", "google": "gemini"}.get(model.system, model.system)
    return f"{provider}:{model.model_name}"


def _read_history(messages: Sequence[ModelMessage], instructions: Sequence[InstructionPart]) -> _ReadHistory:
    read: list[HostMessage] = []
    places: list[_Place] = []
    system: list[str] = [one.content for one in instructions]
    for at, message in enumerate(messages):
        if isinstance(message, ModelResponse):
            read.append(_read_response(message))
            places.append(_Place(at, None))
            continue
        for part_at, part in enumerate(message.parts):
            if isinstance(part, SystemPromptPart):
                system.append(part.content)
            else:
                read.append(_read_part(part))
                places.append(_Place(at, part_at))
    return _ReadHistory(read, places, "\n\n".join(system))


def _read_part(part: ModelRequestPart) -> HostMessage:
    if isinstance(part, UserPromptPart):
        texts, other = _read_content(part)
        return HostMessage(role="user", text="\n\n".join(texts), other_parts=other)
    if isinstance(part, ToolReturnPart):
        return HostMessage(
            role="tool",
            text=part.model_response_str(wrap_if_error=False),
            call_id=part.tool_call_id,
            failed=part.outcome in ("failed", "retried"),
            other_parts=repr(part.files) if part.files else "",
        )
    if isinstance(part, CompactionPart):
        warn_of_host_compaction()
    raise UnreadableHistoryError(type(part).__name__)


def _read_content(part: UserPromptPart) -> tuple[list[str], str]:
    content = [part.content] if isinstance(part.content, str) else part.content
    texts = [one if isinstance(one, str) else one.content for one in content if isinstance(one, (str, TextContent))]
    other = [one for one in content if not isinstance(one, (str, TextContent, CachePoint))]
    return texts, repr(other) if other else ""


def _read_response(response: ModelResponse) -> HostMessage:
    calls = tuple(
        ToolCall(id=one.tool_call_id, name=one.tool_name, arguments=one.args_as_json_str())
        for one in response.parts
        if isinstance(one, ToolCallPart)
    )
    other = [one for one in response.parts if not isinstance(one, (TextPart, ThinkingPart, ToolCallPart))]
    if any(isinstance(one, CompactionPart) for one in other):
        warn_of_host_compaction()
        raise UnreadableHistoryError(CompactionPart.__name__)
    return HostMessage(
        role="assistant",
        text="".join(one.content for one in response.parts if isinstance(one, TextPart)),
        calls=calls,
        signed=any(isinstance(one, ThinkingPart) and one.signature for one in response.parts),
        other_parts=repr(other) if other else "",
    )


def _read_usage(usage: RequestUsage) -> Usage:
    if not usage.input_tokens:
        return Usage()
    read, write = usage.cache_read_tokens, usage.cache_write_tokens
    return Usage(plain=max(usage.input_tokens - read - write, 0), read=read, write=write, output=usage.output_tokens)


def _build_messages(
    prepared: Sequence[PreparedMessage], places: Sequence[_Place], messages: Sequence[ModelMessage]
) -> list[ModelMessage]:
    """Build the messages to send. Parts of one request stay together, and no system prompt part is lost."""
    built: list[ModelMessage] = []
    used: set[int] = set()
    group: list[ModelRequestPart] = []
    group_source: int | None = None

    def end_group() -> None:
        nonlocal group, group_source
        if group:
            source = messages[group_source] if group_source is not None else None
            built.append(replace(source, parts=group) if isinstance(source, ModelRequest) else ModelRequest(group))
        group, group_source = [], None

    for one in prepared:
        place = None if one.position is None else places[one.position]
        source = messages[place.message] if place is not None else None
        if one.role == "assistant":
            end_group()
            built.append(_build_response(one, source))
            continue
        if place is None or place.message != group_source:
            end_group()
            group_source = place.message if place is not None else None
        if isinstance(source, ModelRequest) and place is not None and place.part is not None:
            if place.message not in used:
                used.add(place.message)
                group += [part for part in source.parts if isinstance(part, SystemPromptPart)]
            group.append(_build_part(one, source.parts[place.part]))
        else:
            group.append(UserPromptPart(one.text or ""))
    end_group()
    return [*_list_lost_system_parts(messages, used), *built]


def _list_lost_system_parts(messages: Sequence[ModelMessage], used: set[int]) -> Iterator[ModelMessage]:
    for at, message in enumerate(messages):
        if at not in used and isinstance(message, ModelRequest):
            parts = [part for part in message.parts if isinstance(part, SystemPromptPart)]
            if parts:
                yield replace(message, parts=parts)


def _build_response(prepared: PreparedMessage, source: ModelMessage | None) -> ModelResponse:
    if not isinstance(source, ModelResponse):
        return ModelResponse([TextPart(prepared.text or "")])
    parts = list(source.parts)
    if prepared.without_reasoning:
        parts = [one for one in parts if not (isinstance(one, ThinkingPart) and one.signature)]
    if prepared.text is not None:
        parts = [TextPart(prepared.text), *(one for one in parts if not isinstance(one, TextPart))]
    return source if parts == list(source.parts) else replace(source, parts=parts)


def _build_part(prepared: PreparedMessage, part: ModelRequestPart) -> ModelRequestPart:
    if prepared.text is None:
        return part
    if isinstance(part, ToolReturnPart):
        return ToolReturnPart(
            part.tool_name, prepared.text, part.tool_call_id, outcome=part.outcome, timestamp=part.timestamp
        )
    return UserPromptPart(prepared.text)
