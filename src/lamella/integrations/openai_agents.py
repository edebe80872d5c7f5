"""A session for the OpenAI Agents SDK: Lamella prepares the input of each model call.

from agents import Agent, Runner
from lamella.integrations.openai_agents import LamellaSession

session = LamellaSession("user-7", window=200_000)
agent = Agent(name="Helper", model="gpt-6", tools=[..., session.recall_tool])
result = await Runner.run(agent, "Which file is it?", **session.run_options())

The session stores every item as it is. Only what is sent to the model differs.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, cast

from agents.items import TResponseInputItem
from agents.memory import SessionSettings
from agents.memory.session import is_openai_responses_compaction_aware_session
from agents.run_config import CallModelData, ModelInputData
from agents.tool_context import ToolContext
from agents.usage import Usage as AgentsUsage

from agents import Agent, FunctionTool, ModelResponse, RunConfig, RunContextWrapper, RunHooks, Session, SQLiteSession
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

__all__ = ["LamellaSession"]

_Item = Mapping[str, Any]


class RunOptions(TypedDict):
    """The arguments of ``Runner.run`` that make it use a session."""

    session: Session
    run_config: RunConfig
    hooks: RunHooks[Any]


class LamellaSession:
    """Keeps what was sent, clears unused tool results and refers to repeated documents.

    ``session`` stores the items, by default a ``SQLiteSession`` in memory. ``settings`` are those of
    ``lamella.Conversation``, for example ``window=200_000``. With an ``engine``, what was sent is stored as a
    conversation named after the session. Tool results are only cleared for agents that have ``recall_tool``.
    """

    def __init__(
        self, session_id: str, *, session: Session | None = None, engine: Engine | None = None, **settings: object
    ) -> None:
        if is_openai_responses_compaction_aware_session(session):
            warn_of_host_compaction()
        self.session_id = session_id
        self._session = session or SQLiteSession(session_id)
        self._histories = HostHistories(engine=engine, name=session_id, settings=settings)
        self._filter_input = _InputFilter(self._histories)
        definition = self._histories.recall_tool
        self.recall_tool = FunctionTool(
            name=definition.name,
            description=definition.description,
            params_json_schema=dict(definition.parameters),
            on_invoke_tool=self._invoke_recall,
            strict_json_schema=False,
        )

    @property
    def conversations(self) -> tuple[Conversation, ...]:
        """The conversations of the session, the one used last at the end; their ledgers have the cost."""
        return self._histories.conversations

    @property
    def counts(self) -> HostHistoryCounts:
        """How many requests were prepared, and how many were sent unchanged."""
        return self._histories.counts

    def totals(self) -> LedgerTotals:
        """Return the sums of the ledgers: tokens, and money where the prices are known."""
        return self._histories.totals()

    @property
    def session_settings(self) -> SessionSettings | None:
        return self._session.session_settings

    def run_options(self) -> RunOptions:
        """Return the arguments of ``Runner.run`` that make it use this session."""
        return RunOptions(
            session=cast(Session, self),
            run_config=RunConfig(call_model_input_filter=self._filter_input),
            hooks=self._filter_input,
        )

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        return await self._session.get_items(limit)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        await self._session.add_items(items)

    async def pop_item(self) -> TResponseInputItem | None:
        return await self._session.pop_item()

    async def clear_session(self) -> None:
        await self._session.clear_session()

    async def _invoke_recall(self, context: ToolContext[Any], arguments: str) -> str:
        try:
            given = json.loads(arguments)
            query, limit, start = str(given["query"]), given.get("limit"), given.get("start")
        except (ValueError, KeyError, AttributeError, TypeError):
            return 'Give the arguments as a JSON object with at least "query".'
        return await self._histories.recall(query, call_id=context.tool_call_id, limit=limit, start=start)


class _InputFilter(RunHooks[Any]):
    """Prepares the input of each model call, and records the reply."""

    def __init__(self, histories: HostHistories) -> None:
        self._histories = histories
        # What was read of the last request of each agent: the messages and the system prompt.
        self._last_read: dict[str, tuple[list[HostMessage], str]] = {}

    def __call__(self, call: CallModelData[Any]) -> ModelInputData:
        items, instructions = cast("list[_Item]", call.model_data.input), call.model_data.instructions or ""
        self._last_read.pop(call.agent.name, None)
        converted = self._histories.convert_request(
            lambda: (
                *_read_items(items),
                [_read_tool(one) for one in call.agent.tools if isinstance(one, FunctionTool)],
            )
        )
        if converted is None:
            return call.model_data
        messages, groups, tools = converted
        model = call.agent.model if isinstance(call.agent.model, str) else None
        prepared = self._histories.prepare(
            messages, system=instructions, tools=tools, model=f"openai:{model}" if model else None
        )
        if prepared is None:
            return call.model_data
        self._last_read[call.agent.name] = (messages, instructions)
        built = [item for one in prepared.messages for item in _build_items(one, groups)]
        return ModelInputData(
            input=cast("list[TResponseInputItem]", built),
            instructions=(instructions + prepared.added_to_system).lstrip("\n") or None,
        )

    async def on_llm_end(
        self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse
    ) -> None:  # the SDK calls it so
        read = self._last_read.pop(agent.name, None)
        if read is None:
            return
        converted = self._histories.convert_reply(
            lambda: (_read_items(cast("list[_Item]", response.to_input_items()))[0], _read_usage(response.usage))
        )
        if converted is not None and len(converted[0]) == 1:
            (messages, system), (replies, usage) = read, converted
            self._histories.record_reply(messages, replies[0], system=system, usage=usage)


def _read_tool(given: FunctionTool) -> Tool:
    return Tool(name=given.name, description=given.description, parameters=given.params_json_schema)


def _read_items(items: Sequence[_Item]) -> tuple[list[HostMessage], list[list[_Item]]]:
    """Return the messages, each with the items that it was read from. The items of one reply are one message."""
    messages: list[HostMessage] = []
    groups: list[list[_Item]] = []
    reply: list[_Item] = []

    def end_reply() -> None:
        nonlocal reply
        if reply:
            messages.append(_read_reply(reply))
            groups.append(reply)
        reply = []

    for item in items:
        kind = item.get("type", "message")
        if kind in ("reasoning", "function_call") or (kind == "message" and item.get("role") == "assistant"):
            reply.append(item)
            continue
        end_reply()
        if kind == "compaction":
            warn_of_host_compaction()
        groups.append([item])
        messages.append(_read_input(item))
    end_reply()
    return messages, groups


def _read_input(item: _Item) -> HostMessage:
    if item.get("type") == "function_call_output":
        text, other = _read_content(item.get("output"))
        return HostMessage(role="tool", text=text, call_id=item.get("call_id"), other_parts=other)
    if item.get("type", "message") == "message" and item.get("role") == "user":
        text, other = _read_content(item.get("content"))
        return HostMessage(role="user", text=text, other_parts=other)
    raise UnreadableHistoryError(item.get("type"))


def _read_reply(items: Sequence[_Item]) -> HostMessage:
    contents = [_read_content(one.get("content")) for one in items if one.get("type", "message") == "message"]
    calls = tuple(
        ToolCall(id=one["call_id"], name=one["name"], arguments=one["arguments"])
        for one in items
        if one.get("type") == "function_call"
    )
    return HostMessage(
        role="assistant",
        text="".join(text for text, _ in contents),
        calls=calls,
        signed=any(one.get("encrypted_content") for one in items),
        other_parts="".join(other for _, other in contents),
    )


def _read_content(content: object) -> tuple[str, str]:
    """Return the text of an item, and what identifies its other parts."""
    if isinstance(content, str):
        return content, ""
    parts: list[_Item] = list(content) if isinstance(content, Sequence) else []
    texts = [one["text"] for one in parts if one.get("type") in ("input_text", "output_text", "text")]
    other = [one for one in parts if one.get("type") not in ("input_text", "output_text", "text")]
    return "\n\n".join(texts), json.dumps(other, default=repr) if other else ""


def _read_usage(usage: AgentsUsage) -> Usage:
    if not usage.input_tokens:
        return Usage()
    details = usage.input_tokens_details
    read, write = details.cached_tokens or 0, details.cache_write_tokens or 0
    plain = max(usage.input_tokens - read - write, 0)
    return Usage(plain=plain, read=read, write=write, output=usage.output_tokens)


def _build_items(prepared: PreparedMessage, groups: Sequence[Sequence[_Item]]) -> list[_Item]:
    if prepared.position is None:
        return [{"role": prepared.role, "content": prepared.text or ""}]
    items = list(groups[prepared.position])
    if prepared.without_reasoning:
        items = [one for one in items if one.get("type") != "reasoning"]
    if prepared.text is None:
        return items
    if prepared.role == "tool":
        return [{**items[0], "output": prepared.text}]
    if prepared.role == "user":
        return [{**items[0], "content": prepared.text}]
    calls = [one for one in items if one.get("type") == "function_call"]
    return [*([{"role": "assistant", "content": prepared.text}] if prepared.text else []), *calls]
