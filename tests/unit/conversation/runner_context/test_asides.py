"""Asides: what a runner asks a model on the way is answered, tried again, and written down with what it cost."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from tests.unit.conversation.backends import Failing, make_backend

from lamella.conversation.conversation import Conversation
from lamella.conversation.import_export import ConversationRepository, copy_branch_into_new_conversation
from lamella.conversation.runner_context import RunRequest, execute_run, run_auxiliary_call
from lamella.conversation.turn import TurnRequest
from lamella.conversation.turn_runner import SendContext
from lamella.core.log.call import CacheOutcome, ModelCall
from lamella.core.messages import Delta, Message, ModelRequest, Role, TextDelta, Usage
from lamella.errors import AuthenticationError, ConflictError, InvalidReplyError, RateLimitError, StoreUnavailableError
from lamella.schemas.ledger import build_ledger_rows, total_ledger_rows
from lamella.stores.memory import InMemoryStore
from lamella.testing import ScriptedProvider, ScriptedReply

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


def open_chat(store: InMemoryStore | Failing | None = None) -> Conversation:
    return Conversation.open(make_backend(store or InMemoryStore()), "chat", {"model": MODEL})


def make_job(chat: Conversation, provider: ScriptedProvider, sleep: Sleeping | None = None) -> RunRequest:
    send_context = SendContext(
        provider=provider,
        clock=Ticking(),
        sleep=sleep or Sleeping(),
        jitter=lambda: 0.5,
        model=MODEL,
        max_answer_tokens=50,
    )
    return RunRequest(conversation=chat, send_context=send_context, turn_request=TurnRequest(text="What grows here?"))


def calls(chat: Conversation) -> list[ModelCall]:
    return [call for turn in chat.ledger() for call in turn]


def limited() -> RateLimitError:
    return RateLimitError("Too many requests.", hint="Wait.", wait=None)


def test_auxiliary_call_uses_conversation_temperature() -> None:
    chat = Conversation.open(make_backend(InMemoryStore()), "chat", {"model": MODEL, "temperature": 0.0})
    provider = ScriptedProvider("None.")
    asyncio.run(run_auxiliary_call(make_job(chat, provider), PLAN, max_answer_tokens=50, purpose="plan"))
    assert [request.temperature for request in provider.requests] == [0.0]


def test_auxiliary_call_is_in_ledger_with_tokens_cost_and_time() -> None:
    chat = open_chat()
    provider = ScriptedProvider(ScriptedReply(text="None.", usage=USED), ScriptedReply(text="Beans.", usage=USED))
    run_request = make_job(chat, provider)

    async def run() -> None:
        reply = await run_auxiliary_call(run_request, PLAN, max_answer_tokens=20, purpose="planner")
        assert (reply.text, chat.turns()) == ("None.", [])
        async for _ in execute_run(run_request):
            pass

    asyncio.run(run())
    assert provider.requests[0].max_output_tokens == 20
    aside, answer = calls(chat)
    assert (aside.purpose, answer.purpose) == ("planner", "answer")
    assert (aside.model, aside.usage, aside.stop, aside.verdict.outcome) == (
        MODEL,
        USED,
        "end",
        CacheOutcome.EXPECTED_MISS,
    )
    assert aside.predicted is not None
    assert aside.predicted.total > 0
    assert aside.timing.total is not None
    assert aside.billed is not None
    assert aside.billed > Decimal(0)
    sums = total_ledger_rows(build_ledger_rows(chat.turns(), chat.ledger()))
    assert (sums.calls, sums.auxiliary_calls, sums.billed) == (2, 1, aside.billed * 2)
    again = Conversation.open(chat._backend, "chat")
    assert again.ledger() == chat.ledger()
    assert [message.text for message in provider.requests[1].messages] == ["What grows here?"], "it is no part of it"


def test_auxiliary_call_belongs_to_pending_question() -> None:
    chat = open_chat()
    chat.ask(TurnRequest(text="first"))
    chat.reply("yes")
    chat.ask(TurnRequest(text="second"))
    asyncio.run(
        run_auxiliary_call(make_job(chat, ScriptedProvider("None.")), PLAN, max_answer_tokens=20, purpose="planner")
    )
    assert [[call.purpose for call in turn] for turn in chat.ledger()] == [[], ["planner"]]


def test_retryable_error_is_retried_with_delays() -> None:
    chat, sleep = open_chat(), Sleeping()
    provider = ScriptedProvider(ScriptedReply(error=limited()), ScriptedReply(error=limited()), "None.")
    reply = asyncio.run(
        run_auxiliary_call(make_job(chat, provider, sleep), PLAN, max_answer_tokens=20, purpose="planner")
    )
    assert reply.text == "None."
    assert sleep.waits == [1.25, 2.5]
    chat.ask(TurnRequest(text="hi"))
    assert [call.retries for call in calls(chat)] == [2]


def test_last_error_is_raised_without_charge() -> None:
    chat = open_chat()
    provider = ScriptedProvider(*[ScriptedReply(error=limited()) for _ in range(4)])
    with pytest.raises(RateLimitError):
        asyncio.run(run_auxiliary_call(make_job(chat, provider), PLAN, max_answer_tokens=20, purpose="planner"))
    assert (len(provider.requests), chat.version) == (4, 0)


def test_permanent_error_is_not_retried() -> None:
    refused = AuthenticationError("No.", hint="Check the key.")
    provider = ScriptedProvider(ScriptedReply(error=refused))
    with pytest.raises(AuthenticationError):
        asyncio.run(run_auxiliary_call(make_job(open_chat(), provider), PLAN, max_answer_tokens=20, purpose="planner"))
    assert len(provider.requests) == 1


def test_call_broken_in_middle_is_recorded_and_not_retried() -> None:
    chat = open_chat()
    provider = ScriptedProvider(ScriptedReply(text="No", error=limited()), "None.")
    with pytest.raises(RateLimitError):
        asyncio.run(run_auxiliary_call(make_job(chat, provider), PLAN, max_answer_tokens=20, purpose="planner"))
    chat.ask(TurnRequest(text="hi"))
    assert [(call.stop, len(provider.requests)) for call in calls(chat)] == [("broken", 1)]


def test_call_without_end_is_broken() -> None:
    class Endless(ScriptedProvider):
        async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
            yield TextDelta(text="None")

    chat = open_chat()
    with pytest.raises(InvalidReplyError, match="ended without an end"):
        asyncio.run(run_auxiliary_call(make_job(chat, Endless("None.")), PLAN, max_answer_tokens=20, purpose="planner"))
    chat.ask(TurnRequest(text="hi"))
    assert [call.stop for call in calls(chat)] == ["broken"]


def test_cancelled_call_is_recorded_as_stopped() -> None:
    chat = open_chat()
    begun = asyncio.Event()

    class Slow(ScriptedProvider):
        async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
            yield TextDelta(text="None")
            begun.set()
            await asyncio.Event().wait()

    async def run() -> None:
        task = asyncio.create_task(
            run_auxiliary_call(make_job(chat, Slow("None.")), PLAN, max_answer_tokens=20, purpose="planner")
        )
        await begun.wait()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert task.cancelled()

    asyncio.run(run())
    chat.ask(TurnRequest(text="hi"))
    assert [call.stop for call in calls(chat)] == ["stopped"]


def test_call_is_recorded_despite_concurrent_append() -> None:
    store = InMemoryStore()
    chat = open_chat(store)
    chat.ask(TurnRequest(text="first"))
    chat.reply("yes")
    other = Conversation.open(chat._backend, "chat")
    other.ask(TurnRequest(text="theirs"))
    other.reply("indeed")
    asyncio.run(
        run_auxiliary_call(make_job(chat, ScriptedProvider("None.")), PLAN, max_answer_tokens=20, purpose="planner")
    )
    with pytest.raises(ConflictError):
        chat.ask(TurnRequest(text="ours"))
    chat.reload()
    assert [[call.purpose for call in turn] for turn in chat.ledger()] == [[], ["planner"]]


def test_store_error_is_raised() -> None:
    store = Failing(InMemoryStore())
    chat = open_chat(store)
    chat.ask(TurnRequest(text="first"))
    store.down = True
    with pytest.raises(StoreUnavailableError):
        asyncio.run(
            run_auxiliary_call(make_job(chat, ScriptedProvider("None.")), PLAN, max_answer_tokens=20, purpose="planner")
        )


def first_reply(chat: Conversation) -> str:
    reply = chat.turns()[0].reply
    assert reply is not None
    return reply.id


@pytest.mark.parametrize("done", [lambda chat: chat.head, first_reply])
def test_fork_and_verify_include_auxiliary_calls(done: Callable[[Conversation], str]) -> None:
    chat = open_chat()
    asyncio.run(
        run_auxiliary_call(make_job(chat, ScriptedProvider("None.")), PLAN, max_answer_tokens=20, purpose="planner")
    )
    for text in ("first", "second"):
        chat.ask(TurnRequest(text=text))
        asyncio.run(
            run_auxiliary_call(
                make_job(chat, ScriptedProvider("None.")), PLAN, max_answer_tokens=20, purpose=f"of {text}"
            )
        )
        chat.reply("yes")
    asyncio.run(
        run_auxiliary_call(make_job(chat, ScriptedProvider("None.")), PLAN, max_answer_tokens=20, purpose="after")
    )
    copy_branch_into_new_conversation(chat._backend, chat.id, done(chat), name="other")
    other = Conversation.open(chat._backend, "other")
    told = [[call.purpose for call in turn] for turn in other.ledger()]
    assert told == [["planner", "of first"], ["of second", "after"]][: len(told)]
    assert len(told) in (1, 2)
    assert other.ledger() == chat.ledger()[: len(told)]
    assert list(ConversationRepository(chat._backend.store, Ticking()).verify()) == []
