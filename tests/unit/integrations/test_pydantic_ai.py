"""Agents of pydantic-ai with Lamella: what their model gets, and what stays as it was."""

import asyncio
from collections.abc import Sequence

import pytest
from pydantic_ai import Agent, BinaryContent, ToolDefinition
from pydantic_ai.messages import (
    CompactionPart,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

from lamella.integrations.host_history import HostShortensHistoryWarning
from lamella.integrations.pydantic_ai import LamellaCapability

_ROUNDS = 5


class _Reader:
    """A model that reads files and then answers; it keeps the messages of each request."""

    def __init__(self) -> None:
        self.requests: list[list[ModelMessage]] = []
        self.offered: list[Sequence[ToolDefinition]] = []

    def answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.requests.append(messages)
        self.offered.append(info.function_tools)
        usage = RequestUsage(input_tokens=1_000, cache_read_tokens=600, output_tokens=5)
        done = _count_rounds(messages)
        if done < _ROUNDS:
            return ModelResponse([TextPart("I look."), ToolCallPart("read", {"number": done})], usage=usage)
        return ModelResponse([TextPart("It is there.")], usage=usage)

    @property
    def characters(self) -> int:
        return sum(len(ModelMessagesTypeAdapter.dump_json(one)) for one in self.requests)


def _count_rounds(messages: Sequence[ModelMessage]) -> int:
    rounds = 0
    for message in reversed(messages):
        if any(isinstance(part, UserPromptPart) for part in message.parts):
            break
        rounds += any(isinstance(part, ToolCallPart) for part in message.parts)
    return rounds


def _make_agent(model: FunctionModel, *capabilities: LamellaCapability) -> Agent[None, str]:
    agent = Agent(model, system_prompt="You find files.", instructions="Be brief.", capabilities=list(capabilities))

    @agent.tool_plain
    def read(number: int) -> str:
        """Read a file."""
        return f"This is file {number}. " + "The bridge opens at noon. " * 500

    return agent


def _run(agent: Agent[None, str], question: str, history: Sequence[ModelMessage]) -> list[ModelMessage]:
    return asyncio.run(agent.run(question, message_history=history)).all_messages()


def _run_tasks(agent: Agent[None, str], count: int) -> list[ModelMessage]:
    history: list[ModelMessage] = []
    for number in range(count):
        history = _run(agent, f"Where is the word of task {number}?", history)
    return history


def test_a_long_run_sends_less_than_half_and_its_history_stays_whole() -> None:
    plain, prepared = _Reader(), _Reader()
    _run_tasks(_make_agent(FunctionModel(plain.answer)), 5)
    capability = LamellaCapability(window=200_000)
    history = _run_tasks(_make_agent(FunctionModel(prepared.answer), capability), 5)
    assert prepared.characters < plain.characters / 2
    assert (capability.counts.prepared, capability.counts.unchanged) == (30, 0)
    results = [part for message in history for part in message.parts if isinstance(part, ToolReturnPart)]
    assert len(results) == 25
    assert all("The bridge opens at noon." in str(part.content) for part in results)


def test_the_usage_of_a_run_is_in_the_ledger() -> None:
    capability = LamellaCapability(window=200_000, model="anthropic:claude-opus-5-5")
    _run_tasks(_make_agent(FunctionModel(_Reader().answer), capability), 2)
    (conversation,) = capability.conversations
    calls = [call for turn in conversation.ledger() for call in turn]
    assert [call.usage.read for call in calls] == [600] * 12
    assert all(call.billed for call in calls)


def test_the_system_prompt_and_every_question_are_sent() -> None:
    reader = _Reader()
    _run_tasks(_make_agent(FunctionModel(reader.answer), LamellaCapability(window=200_000)), 4)
    sent = str(ModelMessagesTypeAdapter.dump_json(reader.requests[-1]))
    assert "You find files." in sent
    assert all(f"Where is the word of task {number}?" in sent for number in range(4))


def test_the_model_can_recall_what_was_cleared() -> None:
    answers: list[str] = []

    def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        last = messages[-1].parts[-1]
        if isinstance(last, UserPromptPart) and "recall" in str(last.content):
            return ModelResponse([ToolCallPart("recall", {"query": "This is file 0", "start": 0})])
        if isinstance(last, ToolReturnPart) and last.tool_name == "recall":
            answers.append(str(last.content))
            return ModelResponse([TextPart("Found.")])
        done = _count_rounds(messages)
        return ModelResponse([ToolCallPart("read", {"number": done}) if done < _ROUNDS else TextPart("There.")])

    agent = _make_agent(FunctionModel(answer), LamellaCapability(window=200_000))
    history = _run_tasks(agent, 4)
    _run(agent, "Please recall the first file.", history)
    assert len(answers) == 1
    assert "This is file 0. The bridge opens at noon." in answers[0]


def test_runs_at_once_have_conversations_of_their_own() -> None:
    capability = LamellaCapability(window=200_000)
    agent = _make_agent(FunctionModel(_Reader().answer), capability)

    async def run_all() -> None:
        await asyncio.gather(*(agent.run(f"Where is word {number}?") for number in range(5)))

    asyncio.run(run_all())
    questions = [one.turns()[0].message.text for one in capability.conversations]
    assert sorted(questions) == [f"Where is word {number}?" for number in range(5)]
    assert capability.counts.unchanged == 0


def test_a_streamed_answer_is_recorded() -> None:
    async def stream(_messages: list[ModelMessage], _info: AgentInfo):  # type: ignore[no-untyped-def]  # noqa: ANN202  # pydantic-ai infers it
        yield "It is "
        yield "there."

    capability = LamellaCapability()
    agent: Agent[None, str] = Agent(FunctionModel(stream_function=stream), capabilities=[capability])

    async def run() -> None:
        async with agent.run_stream("Where?") as result:
            assert await result.get_output() == "It is there."

    asyncio.run(run())
    (conversation,) = capability.conversations
    assert [turn.reply.text for turn in conversation.turns() if turn.reply is not None] == ["It is there."]


def test_a_picture_and_signed_reasoning_are_sent_as_they_are() -> None:
    reader = _Reader()
    thinking = ThinkingPart("Hm.", signature="sig", provider_name="function")
    history: list[ModelMessage] = [
        ModelRequest([UserPromptPart(["What is this?", BinaryContent(b"123", media_type="image/png")])]),
        ModelResponse([thinking, TextPart("A boat.")]),
    ]
    agent = _make_agent(FunctionModel(reader.answer), LamellaCapability())
    _run(agent, "Which one?", history)
    assert [list(one.parts) for one in reader.requests[0][:2]] == [list(one.parts) for one in history]


def test_a_summary_of_another_compactor_is_left_alone() -> None:
    reader = _Reader()
    history: list[ModelMessage] = [ModelRequest([CompactionPart("They looked for a bridge.")])]
    capability = LamellaCapability()
    with pytest.warns(HostShortensHistoryWarning):
        _run(_make_agent(FunctionModel(reader.answer), capability), "Which one?", history)
    assert capability.counts.prepared == 0
    assert any(isinstance(part, CompactionPart) for part in reader.requests[0][0].parts)


def test_without_lamella_an_agent_has_no_recall_tool() -> None:
    reader = _Reader()
    _run_tasks(_make_agent(FunctionModel(reader.answer)), 1)
    assert [one.name for one in reader.offered[0]] == ["read"]
