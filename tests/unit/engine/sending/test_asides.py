"""Asides: what a runner asks a model on the way is answered, tried again, and written down with what it cost."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from tests.unit.engine.backends import Failing, make_backend

from lamella.adapters.stores.memory import MemoryStore
from lamella.core.log.call import Call, Outcome
from lamella.core.messages.delta import Delta, TextDelta
from lamella.core.messages.model import Message, Role
from lamella.core.messages.request import Request
from lamella.core.messages.usage import Usage
from lamella.engine.dialogue.ask import Ask
from lamella.engine.keeping.conversations import Conversations
from lamella.engine.keeping.forking import fork_into
from lamella.engine.keeping.stored import StoredChat
from lamella.engine.sending.asides import ask_aside
from lamella.engine.sending.delivery import Delivery
from lamella.engine.sending.job import Job, carry_out
from lamella.errors import ConflictError, KeyRefusedError, RateLimitedError, ReplyBrokenError, StoreUnavailableError
from lamella.testing import Line, ScriptedProvider
from lamella.views.ledger import make_rows, sum_rows

MODEL = "anthropic:claude-opus-5-5"
PLAN = (Message(role=Role.USER, pieces=("Which notes are needed?",)),)
USED = Usage(plain=1_000, read=0, write=0, output=100)


class Ticking:
    def __init__(self) -> None:
        self.moment = datetime(2026, 11, 1, tzinfo=UTC)

    def now(self) -> datetime:
        self.moment += timedelta(seconds=1)
        return self.moment


class Sleeping:
    def __init__(self) -> None:
        self.waits: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)


def open_chat(store: MemoryStore | Failing | None = None) -> StoredChat:
    return StoredChat(make_backend(store or MemoryStore()), "chat", {"model": MODEL})


def make_job(chat: StoredChat, provider: ScriptedProvider, sleep: Sleeping | None = None) -> Job:
    post = Delivery(
        provider=provider, clock=Ticking(), sleep=sleep or Sleeping(), jitter=lambda: 0.5, model=MODEL, answer=50
    )
    return Job(chat=chat, post=post, asked=Ask(text="What grows here?"))


def calls(chat: StoredChat) -> list[Call]:
    return [call for turn in chat.ledger() for call in turn]


def limited() -> RateLimitedError:
    return RateLimitedError("Too many requests.", hint="Wait.", wait=None)


def test_the_temperature_of_a_conversation_holds_on_the_way_too() -> None:
    chat = StoredChat(make_backend(MemoryStore()), "chat", {"model": MODEL, "temperature": 0.0})
    provider = ScriptedProvider("None.")
    asyncio.run(ask_aside(make_job(chat, provider), PLAN, answer=50, purpose="plan"))
    assert [request.temperature for request in provider.requests] == [0.0]


def test_a_call_is_in_the_ledger_of_the_turn_it_is_made_for_with_tokens_money_and_time() -> None:
    chat = open_chat()
    provider = ScriptedProvider(Line(text="None.", usage=USED), Line(text="Beans.", usage=USED))
    job = make_job(chat, provider)

    async def run() -> None:
        reply = await ask_aside(job, PLAN, answer=20, purpose="planner")
        assert (reply.text, chat.turns()) == ("None.", [])
        async for _ in carry_out(job):
            pass

    asyncio.run(run())
    assert provider.requests[0].answer == 20
    aside, answer = calls(chat)
    assert (aside.purpose, answer.purpose) == ("planner", "answer")
    assert (aside.model, aside.usage, aside.stop, aside.verdict.outcome) == (MODEL, USED, "end", Outcome.COLD)
    assert aside.predicted is not None
    assert aside.predicted.total > 0
    assert aside.timing.total is not None
    assert aside.billed is not None
    assert aside.billed > Decimal(0)
    sums = sum_rows(make_rows(chat.turns(), chat.ledger()))
    assert (sums.calls, sums.asides, sums.billed) == (2, 1, aside.billed * 2)
    again = StoredChat(chat._backend, "chat")
    assert again.ledger() == chat.ledger()
    assert [message.text for message in provider.requests[1].messages] == ["What grows here?"], "it is no part of it"


def test_it_goes_with_a_question_that_waits() -> None:
    chat = open_chat()
    chat.ask(Ask(text="first"))
    chat.reply("yes")
    chat.ask(Ask(text="second"))
    asyncio.run(ask_aside(make_job(chat, ScriptedProvider("None.")), PLAN, answer=20, purpose="planner"))
    assert [[call.purpose for call in turn] for turn in chat.ledger()] == [[], ["planner"]]


def test_what_may_help_is_tried_again_with_waits_and_counted() -> None:
    chat, sleep = open_chat(), Sleeping()
    provider = ScriptedProvider(Line(error=limited()), Line(error=limited()), "None.")
    reply = asyncio.run(ask_aside(make_job(chat, provider, sleep), PLAN, answer=20, purpose="planner"))
    assert reply.text == "None."
    assert sleep.waits == [1.25, 2.5]
    chat.ask(Ask(text="hi"))
    assert [call.retries for call in calls(chat)] == [2]


def test_after_the_last_try_the_error_is_raised_and_nothing_was_paid_for() -> None:
    chat = open_chat()
    provider = ScriptedProvider(*[Line(error=limited()) for _ in range(4)])
    with pytest.raises(RateLimitedError):
        asyncio.run(ask_aside(make_job(chat, provider), PLAN, answer=20, purpose="planner"))
    assert (len(provider.requests), chat.version) == (4, 0)


def test_what_no_try_helps_is_asked_once() -> None:
    refused = KeyRefusedError("No.", hint="Check the key.")
    provider = ScriptedProvider(Line(error=refused))
    with pytest.raises(KeyRefusedError):
        asyncio.run(ask_aside(make_job(open_chat(), provider), PLAN, answer=20, purpose="planner"))
    assert len(provider.requests) == 1


def test_one_that_breaks_in_the_middle_is_written_down_and_not_tried_again() -> None:
    chat = open_chat()
    provider = ScriptedProvider(Line(text="No", error=limited()), "None.")
    with pytest.raises(RateLimitedError):
        asyncio.run(ask_aside(make_job(chat, provider), PLAN, answer=20, purpose="planner"))
    chat.ask(Ask(text="hi"))
    assert [(call.stop, len(provider.requests)) for call in calls(chat)] == [("broken", 1)]


def test_one_that_ends_without_an_end_is_broken() -> None:
    class Endless(ScriptedProvider):
        async def stream(self, request: Request) -> AsyncIterator[Delta]:
            yield TextDelta(text="None")

    chat = open_chat()
    with pytest.raises(ReplyBrokenError, match="ended without an end"):
        asyncio.run(ask_aside(make_job(chat, Endless("None.")), PLAN, answer=20, purpose="planner"))
    chat.ask(Ask(text="hi"))
    assert [call.stop for call in calls(chat)] == ["broken"]


def test_one_that_is_cancelled_is_written_down_as_stopped() -> None:
    chat = open_chat()
    begun = asyncio.Event()

    class Slow(ScriptedProvider):
        async def stream(self, request: Request) -> AsyncIterator[Delta]:
            yield TextDelta(text="None")
            begun.set()
            await asyncio.Event().wait()

    async def run() -> None:
        task = asyncio.create_task(ask_aside(make_job(chat, Slow("None.")), PLAN, answer=20, purpose="planner"))
        await begun.wait()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert task.cancelled()

    asyncio.run(run())
    chat.ask(Ask(text="hi"))
    assert [call.stop for call in calls(chat)] == ["stopped"]


def test_it_is_kept_although_somebody_else_went_on_and_they_are_still_noticed() -> None:
    store = MemoryStore()
    chat = open_chat(store)
    chat.ask(Ask(text="first"))
    chat.reply("yes")
    other = StoredChat(chat._backend, "chat")
    other.ask(Ask(text="theirs"))
    other.reply("indeed")
    asyncio.run(ask_aside(make_job(chat, ScriptedProvider("None.")), PLAN, answer=20, purpose="planner"))
    with pytest.raises(ConflictError):
        chat.ask(Ask(text="ours"))
    chat.reload()
    assert [[call.purpose for call in turn] for turn in chat.ledger()] == [[], ["planner"]]


def test_a_store_that_does_not_take_it_is_an_error() -> None:
    store = Failing(MemoryStore())
    chat = open_chat(store)
    chat.ask(Ask(text="first"))
    store.down = True
    with pytest.raises(StoreUnavailableError):
        asyncio.run(ask_aside(make_job(chat, ScriptedProvider("None.")), PLAN, answer=20, purpose="planner"))


def first_reply(chat: StoredChat) -> str:
    reply = chat.turns()[0].reply
    assert reply is not None
    return reply.id


@pytest.mark.parametrize("done", [lambda chat: chat.head, first_reply])
def test_a_fork_and_verify_know_of_it(done: Callable[[StoredChat], str]) -> None:
    chat = open_chat()
    asyncio.run(ask_aside(make_job(chat, ScriptedProvider("None.")), PLAN, answer=20, purpose="planner"))
    for text in ("first", "second"):
        chat.ask(Ask(text=text))
        asyncio.run(ask_aside(make_job(chat, ScriptedProvider("None.")), PLAN, answer=20, purpose=f"of {text}"))
        chat.reply("yes")
    asyncio.run(ask_aside(make_job(chat, ScriptedProvider("None.")), PLAN, answer=20, purpose="after"))
    fork_into(chat._backend, chat.id, done(chat), name="other")
    other = StoredChat(chat._backend, "other")
    told = [[call.purpose for call in turn] for turn in other.ledger()]
    assert told == [["planner", "of first"], ["of second", "after"]][: len(told)]
    assert len(told) in (1, 2)
    assert other.ledger() == chat.ledger()[: len(told)]
    assert list(Conversations(chat._backend.store, Ticking()).verify()) == []
