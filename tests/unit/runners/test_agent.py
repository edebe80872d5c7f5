"""The agent by itself: what it asks with, and to whom it leaves what it cannot do."""

import asyncio

import pytest
from tests.speaking import Speaker
from tests.unit.engine.backends import Ticking, make_backend

from lamella import Turn
from lamella.adapters.stores.memory import MemoryStore
from lamella.engine.dialogue.ask import Ask
from lamella.engine.keeping.stored import StoredChat
from lamella.engine.sending.delivery import Delivery
from lamella.engine.sending.job import Job, Runner, Workplace
from lamella.runners.agent import run_agent
from lamella.runners.chat import run_chat


def ask(place: Workplace, runners: dict[str, Runner]) -> Turn:
    """What the agent asks, or whoever does in its place."""
    post = Delivery(
        provider=Speaker("Yes."),  # type: ignore[arg-type]
        clock=Ticking(),
        sleep=asyncio.sleep,
        jitter=lambda: 0.0,
        model="m",
    )
    chat = StoredChat(make_backend(MemoryStore()), "chat", {"model": "m"})
    job = Job(chat=chat, post=post, asked=Ask(text="Well?", runner="agent"), place=place, runners=runners)

    async def main() -> Turn:
        return next(turn for turn in [event.turn async for event in run_agent(job)] if turn is not None)

    return asyncio.run(main())


def test_an_agent_without_tools_says_so_and_asks_without_guidelines() -> None:
    turn = ask(Workplace(), {})
    assert [warning for warning in turn.envelope.warnings if "no tools here" in warning]
    assert turn.envelope.prompt.system.guidelines == ""


@pytest.mark.parametrize(("runners", "instead"), [({}, "chat"), ({"plus": run_chat}, "plus")])
def test_what_it_cannot_do_is_left_to_plus_or_where_there_is_none_to_chat(
    runners: dict[str, Runner], instead: str
) -> None:
    turn = ask(Workplace(calls_tools=lambda _model: False), runners)
    assert turn.envelope.prompt.terms.runner == instead
    assert f"m cannot call tools; {instead} answers in place of agent." in turn.envelope.warnings
