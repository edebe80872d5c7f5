"""The agent by itself: what it asks with, and to whom it leaves what it cannot do."""

import asyncio

import pytest
from tests.runner_provider import Speaker
from tests.unit.conversation.backends import Ticking, make_backend

from lamella import Turn
from lamella.conversation.conversation import Conversation
from lamella.conversation.runner_context import Runner, RunnerContext, RunRequest
from lamella.conversation.turn import TurnRequest
from lamella.conversation.turn_runner import SendContext
from lamella.runners.agent import run_agent, run_chat
from lamella.stores.memory import InMemoryStore


def ask(place: RunnerContext, runners: dict[str, Runner]) -> Turn:
    """What the agent asks, or whoever does in its place."""
    send_context = SendContext(
        provider=Speaker("Yes."),  # type: ignore[arg-type]
        clock=Ticking(),
        sleep=asyncio.sleep,
        jitter=lambda: 0.0,
        model="m",
    )
    chat = Conversation.open(make_backend(InMemoryStore()), "chat", {"model": "m"})
    run_request = RunRequest(
        conversation=chat,
        send_context=send_context,
        turn_request=TurnRequest(text="Well?", runner="agent"),
        runner_context=place,
        runners=runners,
    )

    async def main() -> Turn:
        return next(turn for turn in [event.turn async for event in run_agent(run_request)] if turn is not None)

    return asyncio.run(main())


def test_agent_without_tools_warns_and_sends_no_guidelines() -> None:
    turn = ask(RunnerContext(), {})
    assert [warning for warning in turn.envelope.warnings if "no tools here" in warning]
    assert turn.envelope.prompt.system.guidelines == ""


@pytest.mark.parametrize(("runners", "instead"), [({}, "chat"), ({"plus": run_chat}, "plus")])
def test_agent_falls_back_to_plus_or_chat(runners: dict[str, Runner], instead: str) -> None:
    turn = ask(RunnerContext(supports_tools=lambda _model: False), runners)
    assert turn.envelope.prompt.turn_settings.runner == instead
    assert f"m cannot call tools; {instead} answers in place of agent." in turn.envelope.warnings
