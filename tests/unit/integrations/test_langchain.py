"""Agents of LangChain with Lamella: what their model gets, and what stays as it was."""

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ContextEditingMiddleware, SummarizationMiddleware
from langchain.agents.middleware.context_editing import ClearToolUsesEdit
from langchain.tools import tool
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import Field

from lamella.integrations.host_history import HostShortensHistoryWarning
from lamella.integrations.langchain import LamellaMiddleware

_ROUNDS = 5


class _Reader(BaseChatModel):
    """A model that reads files and then answers; it keeps the messages of each request."""

    requests: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "reader"

    def bind_tools(self, tools: Any, **_given: Any) -> "_Reader":  # noqa: ANN401
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **_given: Any,  # noqa: ANN401
    ) -> ChatResult:
        self.requests.append(messages)
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages))])

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        number = len(self.requests)
        usage = UsageMetadata(
            input_tokens=1_000,
            output_tokens=5,
            total_tokens=1_005,
            input_token_details=InputTokenDetails(cache_read=600),
        )
        asked = max(place for place, one in enumerate(messages) if isinstance(one, HumanMessage))
        done = sum(isinstance(one, AIMessage) for one in messages[asked:])
        if "recall" in str(messages[asked].content) and not done:
            call = {"id": f"call-{number}", "name": "recall", "args": {"query": "This is file 0", "start": 0}}
            return AIMessage("", tool_calls=[call], usage_metadata=usage)
        if done < _ROUNDS and "recall" not in str(messages[asked].content):
            call = {"id": f"call-{number}", "name": "read", "args": {"number": done}}
            return AIMessage("I look.", tool_calls=[call], usage_metadata=usage)
        return AIMessage("It is there.", usage_metadata=usage)

    @property
    def characters(self) -> int:
        return sum(len(str(message.content)) for request in self.requests for message in request)


@tool
def read(number: int) -> str:
    """Read a file."""
    return f"This is file {number}. " + "The bridge opens at noon. " * 500


def _run_tasks(
    model: _Reader, middleware: list[Any], count: int, *, last_question: str | None = None
) -> list[AnyMessage]:
    agent = create_agent(model, tools=[read], system_prompt="You find files.", middleware=middleware)
    history: list[AnyMessage] = []
    questions = [f"Where is the word of task {number}?" for number in range(count)]
    for question in [*questions, *([last_question] if last_question else [])]:
        history = agent.invoke({"messages": [*history, HumanMessage(question)]})["messages"]
    return history


def test_a_long_run_sends_less_than_half_and_its_state_stays_whole() -> None:
    plain, prepared = _Reader(), _Reader()
    _run_tasks(plain, [], 5)
    middleware = LamellaMiddleware(window=200_000)
    history = _run_tasks(prepared, [middleware], 5)
    assert prepared.characters < plain.characters / 2
    assert (middleware.counts.prepared, middleware.counts.unchanged) == (30, 0)
    results = [one for one in history if isinstance(one, ToolMessage)]
    assert len(results) == 25
    assert all("The bridge opens at noon." in str(one.content) for one in results)


def test_the_usage_of_a_run_is_in_the_ledger() -> None:
    middleware = LamellaMiddleware(window=200_000, model="anthropic:claude-opus-5-5")
    _run_tasks(_Reader(), [middleware], 2)
    (conversation,) = middleware.conversations
    calls = [call for turn in conversation.ledger() for call in turn]
    assert [call.usage.read for call in calls] == [600] * 12
    assert all(call.billed for call in calls)


def test_the_model_can_recall_what_was_cleared() -> None:
    history = _run_tasks(
        _Reader(), [LamellaMiddleware(window=200_000)], 4, last_question="Please recall the first file."
    )
    (answer,) = [one for one in history if isinstance(one, ToolMessage) and one.name == "recall"]
    assert "This is file 0. The bridge opens at noon." in str(answer.content)


def test_an_asynchronous_run_with_a_checkpointer_is_prepared() -> None:
    model, middleware = _Reader(), LamellaMiddleware(window=200_000)
    agent = create_agent(model, tools=[read], middleware=[middleware], checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "one"}}

    async def run() -> None:
        for number in range(4):
            await agent.ainvoke({"messages": [HumanMessage(f"Where is word {number}?")]}, thread)
        await agent.ainvoke({"messages": [HumanMessage("Please recall the first file.")]}, thread)

    asyncio.run(run())
    assert middleware.counts.unchanged == 0
    assert len(middleware.conversations) == 1
    (answer,) = [one for one in model.requests[-1] if isinstance(one, ToolMessage) and one.name == "recall"]
    assert "This is file 0. The bridge opens at noon." in str(answer.content)


def test_the_system_prompt_and_every_question_are_sent() -> None:
    model = _Reader()
    _run_tasks(model, [LamellaMiddleware(window=200_000)], 4)
    assert model.requests[-1][0] == SystemMessage("You find files.")
    asked = [one.content for one in model.requests[-1] if isinstance(one, HumanMessage)]
    assert asked == [f"Where is the word of task {number}?" for number in range(4)]


def test_a_picture_is_sent_as_it_is() -> None:
    model, middleware = _Reader(), LamellaMiddleware()
    agent = create_agent(model, tools=[read], middleware=[middleware])
    picture = HumanMessage([{"type": "text", "text": "recall?"}, {"type": "image_url", "image_url": {"url": "data:,"}}])
    agent.invoke({"messages": [picture]})
    assert middleware.counts.unchanged == 0
    assert model.requests[0][0].content == picture.content


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "other",
    [
        ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=5_000, keep=1)]),
        SummarizationMiddleware(model=_Reader(), trigger=("messages", 16), keep=("messages", 12)),
    ],
)
def test_the_middleware_of_another_compactor_is_noticed(other: Any) -> None:  # noqa: ANN401
    with pytest.warns(HostShortensHistoryWarning):
        history = _run_tasks(_Reader(), [other, LamellaMiddleware(window=200_000)], 4)
    assert history[-1].content == "It is there."


class _MalformedCaller(_Reader):
    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        call = {"id": "1", "name": "read", "args": "{number", "error": "no JSON", "type": "invalid_tool_call"}
        return AIMessage("", invalid_tool_calls=[call])


def test_a_reply_or_a_tool_of_an_unknown_form_does_not_end_the_run() -> None:
    middleware = LamellaMiddleware()
    agent = create_agent(_MalformedCaller(), tools=[read], middleware=[middleware])
    assert agent.invoke({"messages": [HumanMessage("Hi")]})["messages"][-1].invalid_tool_calls
    agent = create_agent(_Reader(), tools=[read, {"google_search": {}}], middleware=[middleware])
    assert agent.invoke({"messages": [HumanMessage("Hi")]})["messages"][-1].content == "It is there."
    assert middleware.counts.unchanged > 0


def test_an_unknown_setting_is_refused_when_the_middleware_is_made() -> None:
    with pytest.raises(Exception, match="windoww"):
        LamellaMiddleware(windoww=3)
