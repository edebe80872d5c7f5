"""Agents of the OpenAI Agents SDK with Lamella: what their model gets, and what stays as it was."""

import asyncio
from typing import Any

import pytest
from agents.items import TResponseInputItem
from agents.memory import OpenAIResponsesCompactionArgs
from agents.models.interface import Model
from agents.run_config import CallModelData, ModelInputData
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from agents.usage import Usage
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails

from agents import Agent, FunctionTool, Runner, SQLiteSession, function_tool
from lamella.integrations.host_history import HostShortensHistoryWarning
from lamella.integrations.openai_agents import LamellaSession

_ROUNDS = 5


@function_tool
def read(number: int) -> str:
    """Read a file."""
    return f"This is file {number}. " + "The bridge opens at noon. " * 500


def _script(tasks: int) -> list[ModelStep]:
    usage = Usage(
        requests=1,
        input_tokens=1_000,
        input_tokens_details=InputTokensDetails(cached_tokens=600, cache_write_tokens=0),
        output_tokens=5,
        output_tokens_details=OutputTokensDetails(reasoning_tokens=0),
        total_tokens=1_005,
    )
    steps: list[ModelStep] = []
    for task in range(tasks):
        for number in range(_ROUNDS):
            call = function_call("read", {"number": number}, call_id=f"call-{task}-{number}")
            steps.append(ModelStep(output=[call], usage=usage))
        steps.append(ModelStep(output=[assistant_message("It is there.")], usage=usage))
    return steps


def _make_agent(model: Model, *tools: FunctionTool) -> Agent[None]:
    return Agent(name="finder", instructions="You find files.", model=model, tools=[read, *tools])


def _run_tasks(agent: Agent[None], count: int, options: Any) -> None:  # noqa: ANN401
    async def run() -> None:
        for number in range(count):
            await Runner.run(agent, f"Where is the word of task {number}?", **options)

    asyncio.run(run())


def _count_characters(model: ScriptedModel) -> int:
    return sum(len(str(call.input)) for call in model.calls)


@pytest.fixture(autouse=True)
def _no_tracing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")


def test_a_long_run_sends_less_than_half_and_the_session_stays_whole() -> None:
    plain, prepared = ScriptedModel(_script(5)), ScriptedModel(_script(5))
    _run_tasks(_make_agent(plain), 5, {"session": SQLiteSession("plain")})
    session = LamellaSession("prepared", window=200_000)
    _run_tasks(_make_agent(prepared, session.recall_tool), 5, session.run_options())
    assert _count_characters(prepared) < _count_characters(plain) / 2
    assert (session.counts.prepared, session.counts.unchanged) == (30, 0)
    outputs = [one for one in asyncio.run(session.get_items()) if one.get("type") == "function_call_output"]
    assert len(outputs) == 25
    assert all("The bridge opens at noon." in str(one) for one in outputs)


def test_nothing_is_cleared_for_an_agent_without_the_recall_tool() -> None:
    model, session = ScriptedModel(_script(5)), LamellaSession("one", window=200_000)
    _run_tasks(_make_agent(model), 5, session.run_options())
    assert model.calls[-1].input == asyncio.run(session.get_items())[:-1]


def test_the_usage_of_a_run_is_in_the_ledger() -> None:
    session = LamellaSession("one", window=200_000, model="openai:gpt-5")
    _run_tasks(_make_agent(ScriptedModel(_script(2)), session.recall_tool), 2, session.run_options())
    (conversation,) = session.conversations
    calls = [call for turn in conversation.ledger() for call in turn]
    assert [call.usage.read for call in calls] == [600] * 12
    assert all(call.billed for call in calls)


def test_the_model_can_recall_what_was_cleared() -> None:
    recall = function_call("recall", {"query": "This is file 0", "start": 0}, call_id="recall-1")
    model = ScriptedModel([*_script(4), [recall], [assistant_message("Found.")]])
    session = LamellaSession("one", window=200_000)
    _run_tasks(_make_agent(model, session.recall_tool), 5, session.run_options())
    answer = asyncio.run(session.get_items())[-2]
    assert "This is file 0. The bridge opens at noon." in str(answer.get("output"))


@pytest.mark.parametrize("arguments", ["", "[]", "{}", '{"query": null, "limit": "x"}'])
def test_bad_arguments_of_recall_are_answered(arguments: str) -> None:
    session = LamellaSession("one")
    call = function_call("recall", arguments, call_id="recall-1")
    model = ScriptedModel([[call], [assistant_message("Sorry.")]])
    _run_tasks(_make_agent(model, session.recall_tool), 1, session.run_options())
    assert asyncio.run(session.get_items())[-1].get("role") == "assistant"


def test_the_session_stores_items_like_the_one_that_it_wraps() -> None:
    inner = SQLiteSession("one")
    session = LamellaSession("one", session=inner)
    items: list[TResponseInputItem] = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]

    async def use() -> None:
        await session.add_items(items)
        assert await inner.get_items() == items
        assert await session.pop_item() == items[1]
        assert await session.get_items(1) == items[:1]
        await session.clear_session()
        assert await inner.get_items() == []

    asyncio.run(use())


def test_unknown_items_are_sent_unchanged() -> None:
    session = LamellaSession("one")
    items: Any = [{"role": "user", "content": "Hi"}, {"type": "item_reference", "id": "x"}]
    call = CallModelData(
        model_data=ModelInputData(input=items, instructions="You find files."),
        agent=_make_agent(ScriptedModel([])),
        context=None,
    )
    make_input: Any = session.run_options()["run_config"].call_model_input_filter
    assert make_input(call) is call.model_data
    assert session.counts.unchanged == 1


def test_a_session_that_compacts_is_noticed() -> None:
    class CompactingSession(SQLiteSession):
        async def run_compaction(self, args: OpenAIResponsesCompactionArgs | None = None) -> None:
            """Would ask OpenAI to compact the items."""

    with pytest.warns(HostShortensHistoryWarning):
        LamellaSession("one", session=CompactingSession("one"))
