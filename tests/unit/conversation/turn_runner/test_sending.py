"""Sending a turn to a model: events, retries, and what is stored when it ends early."""

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.unit.conversation.test_provider_pool import CLAUDE, begin

import lamella
from lamella.attach import Note
from lamella.clocks import PHASES
from lamella.conversation.adapters import Adapters
from lamella.conversation.backend import Backend, ConversationSettings
from lamella.conversation.conversation import Conversation
from lamella.conversation.tool_executor import LocalToolset
from lamella.conversation.turn import BuiltTurn, ModelAnswer, TurnRequest
from lamella.conversation.turn_runner import EventName, RetryPolicy, SendContext, TurnEvent, TurnRunner
from lamella.core.log.call import CacheOutcome, ModelCall, PrefixChangeCause
from lamella.core.log.events.call import to_model_call, to_stored_call
from lamella.core.log.events.codec import decode_event
from lamella.core.log.events.kinds import EventKind
from lamella.core.log.turn import ReplyEvent
from lamella.core.messages import ModelReply, StopReason, ToolCall, Usage
from lamella.core.values import replace
from lamella.errors import (
    AuthenticationError,
    ContextOverflowError,
    InvalidReplyError,
    LamellaError,
    RateLimitError,
    ReplyOnOtherBranchError,
)
from lamella.providers.scripted import ScriptedProvider, ScriptedReply
from lamella.settings.rules import build_prompt_settings, build_turn_settings
from lamella.stores.memory import InMemoryStore
from lamella.wiring import load_settings, open_adapters

MODEL = "anthropic:claude-opus-5-5"


class Ticking:
    """A clock that moves on by a second each time it is asked."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 11, 1, tzinfo=UTC)

    def now(self) -> datetime:
        self.moment += timedelta(seconds=1)
        return self.moment


class Sleeping:
    """Remembers how long it was asked to wait, and does not."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)


def make_adapters() -> Adapters:
    return open_adapters(None)


def stored(store: InMemoryStore, **settings: object) -> Conversation:
    given = load_settings({"model": MODEL, **settings})
    configured = ConversationSettings(
        prompt_settings=build_prompt_settings(given, make_adapters()),
        turn_settings=build_turn_settings(given),
        model=MODEL,
    )
    return Conversation.open(
        Backend(store=store, clock=Ticking(), adapters=make_adapters(), resolve_settings=lambda _: configured), "chat"
    )


def post(provider: ScriptedProvider, sleep: Sleeping | None = None) -> SendContext:
    return SendContext(provider=provider, clock=Ticking(), sleep=sleep or Sleeping(), jitter=lambda: 0.5)


def run(chat: Conversation, text: str, at: SendContext, *, stop_after: int | None = None) -> list[TurnEvent]:
    async def collect() -> list[TurnEvent]:
        events: list[TurnEvent] = []
        async with aclosing(TurnRunner(chat, at).ask(TurnRequest(text=text))) as coming:
            async for event in coming:
                events.append(event)
                if stop_after is not None and len(events) == stop_after:
                    break
        return events

    return asyncio.run(collect())


def said(events: list[TurnEvent]) -> str:
    return "".join(event.text for event in events)


def limited(wait: float | None = None) -> LamellaError:
    return RateLimitError("Too many requests.", hint="Wait.", wait=wait)


def test_turn_is_built_sent_and_answered_in_events() -> None:
    usage = Usage(plain=10, read=0, write=0, output=3)
    events = run(
        stored(InMemoryStore()),
        "hi",
        post(ScriptedProvider(ScriptedReply(text="hello there", chunk_size=5, usage=usage))),
    )
    assert [event.kind.value for event in events] == ["envelope", "delta", "delta", "delta", "usage", "done"]
    assert said(events) == "hello there"


def test_answer_is_in_next_request() -> None:
    chat, provider = stored(InMemoryStore()), ScriptedProvider("one", "two")
    run(chat, "first", post(provider))
    run(chat, "second", post(provider))
    assert [message.text for message in provider.requests[1].messages] == ["first", "one", "second"]


def test_reported_usage_joins_ledger_of_turn() -> None:
    usage = Usage(plain=7, read=0, write=0, output=2)
    events = run(stored(InMemoryStore()), "hi", post(ScriptedProvider(ScriptedReply(text="yes", usage=usage))))
    turn = events[-1].turn
    assert turn is not None
    assert turn.ledger.verdict is not None
    assert turn.ledger.verdict.outcome is CacheOutcome.FIRST
    (call,) = turn.ledger.calls
    assert call.usage == usage
    assert call.billed is not None
    assert (call.timing.build, call.timing.first, call.stop) == (1.0, 1.0, "end")


class Slowing(Ticking):
    """A clock that is asked later and later."""

    def now(self) -> datetime:
        self.moment += (self.moment - datetime(2026, 11, 1, tzinfo=UTC)) + timedelta(seconds=1)
        return self.moment


def test_each_request_records_its_build_time() -> None:
    def look() -> str:
        """Look."""
        return "seen"

    chat, toolbox = stored(InMemoryStore()), LocalToolset([look])
    script = ScriptedProvider(ScriptedReply(calls=(ToolCall(id="a", name="look", arguments="{}"),)), "Done.")
    delivery = replace(post(script), clock=Slowing())

    async def collect() -> list[BuiltTurn]:
        turn_request = TurnRequest(text="hi", tools=toolbox.definitions)
        events = TurnRunner(chat, delivery, toolset=toolbox).ask(turn_request)  # as above
        return [event.turn async for event in events if event.turn is not None]

    turns = asyncio.run(collect())
    first, second = turns[0].ledger.calls[0].timing.build, turns[-1].ledger.calls[-1].timing.build
    assert first is not None
    assert second is not None
    assert 0 < first < second


def test_rate_limit_is_retried_after_requested_delay() -> None:
    sleep, provider = (
        Sleeping(),
        ScriptedProvider(ScriptedReply(error=limited(7.0)), ScriptedReply(error=limited()), "at last"),
    )
    events = run(stored(InMemoryStore()), "hi", post(provider, sleep))
    assert said(events) == "at last"
    assert sleep.waits == [7.0, 2.5]
    assert [event.wait for event in events if event.kind is EventName.RETRY] == sleep.waits
    assert events[-1].turn is not None
    assert events[-1].turn.ledger.calls[0].retries == 2


def test_retries_are_limited() -> None:
    chat = stored(InMemoryStore())
    with pytest.raises(RateLimitError):
        run(chat, "hi", post(ScriptedProvider(*[ScriptedReply(error=limited()) for _ in range(9)])))
    assert chat.prepare_pending_turn() is not None


def test_answer_broken_after_text_is_not_retried_and_text_is_kept() -> None:
    store = InMemoryStore()
    chat, provider = stored(store), ScriptedProvider(ScriptedReply(text="half an ans", error=limited()), "again")
    with pytest.raises(RateLimitError):
        run(chat, "hi", post(provider))
    assert len(provider.requests) == 1
    assert [record.reply and record.reply.text for record in chat.turns()] == ["half an ans"]


def test_stopping_keeps_the_partial_answer_and_stops_the_model() -> None:
    store, provider = InMemoryStore(), ScriptedProvider(ScriptedReply(text="one two three", chunk_size=4))
    run(stored(store), "hi", post(provider), stop_after=3)
    again = stored(store)
    assert [record.reply and record.reply.text for record in again.turns()] == ["one two "]
    assert provider.cancelled == 1
    (reply,) = [record for record in store.load("chat") if record.kind is EventKind.REPLY]
    event = decode_event(reply)
    assert isinstance(event, ReplyEvent)
    assert to_model_call(event.calls[0]).stop == "stopped"


@pytest.mark.parametrize(
    "error", [AuthenticationError("No.", hint="Set a key."), InvalidReplyError("Cut.", hint="Again.")]
)
def test_other_errors_leave_turn_pending(error: LamellaError) -> None:
    chat = stored(InMemoryStore())
    with pytest.raises(type(error)):
        run(chat, "hi", post(ScriptedProvider(ScriptedReply(error=error))))
    assert chat.regenerate().messages[-1].text == "hi"


def test_request_rejected_as_too_long_is_compacted_once() -> None:
    store = InMemoryStore()
    chat = stored(store, layout="in_place")
    for number in range(12):
        run(chat, f"question {number} " * 20, post(ScriptedProvider("an answer of some length " * 5)))
    overflow = ContextOverflowError("Too long.", hint="Shorten.")
    provider = ScriptedProvider(ScriptedReply(error=overflow), "fits now")
    events = run(chat, "and now?", post(provider))
    assert said(events) == "fits now"
    (shrunk,) = [event for event in events if event.kind is EventName.COMPACTION]
    assert shrunk.receipt is not None
    assert len(provider.requests[1].messages) < len(provider.requests[0].messages)
    rebuilt = stored(store, layout="in_place").regenerate()
    assert [m.text for m in rebuilt.messages] == [m.text for m in provider.requests[1].messages]


def test_second_overflow_is_raised() -> None:
    chat = stored(InMemoryStore(), layout="in_place")
    for number in range(12):
        run(chat, f"question {number} " * 20, post(ScriptedProvider("an answer " * 10)))
    overflow = ContextOverflowError("Too long.", hint="Shorten.")
    with pytest.raises(ContextOverflowError):
        run(chat, "and now?", post(ScriptedProvider(ScriptedReply(error=overflow), ScriptedReply(error=overflow))))


def test_delays_double_up_to_maximum() -> None:
    patience = RetryPolicy(first_delay=1, max_delay=5)
    assert [patience.delay(number, requested_delay=None, jitter=0) for number in (1, 2, 3, 4)] == [1, 2, 4, 5]
    assert patience.delay(1, requested_delay=None, jitter=1) == 1.5


def test_calls_round_trip_through_store() -> None:
    usage = Usage(plain=7, read=3, write=0, output=2)
    chat = stored(InMemoryStore())
    run(chat, "hi", post(ScriptedProvider(ScriptedReply(text="yes", usage=usage))))
    events = run(chat, "more", post(ScriptedProvider(ScriptedReply(text="no", usage=replace(usage, read=None)))))
    assert events[-1].turn is not None
    (call,) = events[-1].turn.ledger.calls
    assert call.verdict.prefix_change.cause is PrefixChangeCause.NONE
    assert to_model_call(to_stored_call(call)) == call


def test_closing_the_iterator_closes_the_stream_at_once() -> None:
    provider = ScriptedProvider(ScriptedReply(text="one two three", chunk_size=4))

    async def stop() -> int:
        events = TurnRunner(stored(InMemoryStore()), post(provider)).ask(TurnRequest(text="hi"))
        await anext(events)
        await anext(events)
        await events.aclose()
        return provider.cancelled

    assert asyncio.run(stop()) == 1


def test_answer_is_not_recorded_under_other_question() -> None:
    chat = stored(InMemoryStore())

    async def talk() -> None:
        first = TurnRunner(chat, post(ScriptedProvider("answer to ONE"))).ask(TurnRequest(text="ONE"))
        await anext(first)
        chat.ask(TurnRequest(text="TWO"))
        with pytest.raises(ReplyOnOtherBranchError) as caught:
            async for _ in first:
                pass
        assert [record.reply and record.reply.text for record in chat.turns(caught.value.reply_id)] == ["answer to ONE"]

    asyncio.run(talk())
    assert [(record.message.text, record.reply and record.reply.text) for record in chat.turns()] == [
        ("ONE", ""),
        ("TWO", None),
    ]


def test_turn_after_broken_one_uses_current_model() -> None:
    chat = stored(InMemoryStore())
    broken = post(ScriptedProvider(ScriptedReply(error=AuthenticationError("No.", hint="Set a key."))))
    with pytest.raises(AuthenticationError):
        asyncio.run(_drain(chat, TurnRequest(text="two", model="openai:gpt-b"), broken))
    assert chat.model_for(TurnRequest(text="three")) == "openai:gpt-b"


async def _drain(chat: Conversation, asked: TurnRequest, at: SendContext) -> None:
    async for _ in TurnRunner(chat, at).ask(asked):
        pass


def test_reopened_ledger_knows_time_and_model_of_last_turn() -> None:
    store, start = InMemoryStore(), datetime(2026, 11, 1, tzinfo=UTC)
    long = "word " * 3_000
    verdicts = []
    for reopens in (False, True):
        chat = stored(store if reopens else InMemoryStore(), layout="in_place")
        chat.ask(TurnRequest(text=long), at=start)
        chat.reply(ModelAnswer(reply=ModelReply(text="yes", stop=StopReason.END, id="msg_1")), at=start)
        if reopens:
            chat = stored(store, layout="in_place")
        turn = chat.ask(TurnRequest(text="more"), at=start + timedelta(hours=30))
        verdicts.append((turn.previous_response_id, turn.seconds_since_previous_turn, turn.cache))
    assert verdicts[0] == verdicts[1]
    assert verdicts[0][0] == "msg_1"


def test_compaction_after_overflow_is_automatic_and_predicted() -> None:
    chat = stored(InMemoryStore(), layout="in_place")
    for number in range(12):
        run(chat, f"question {number} " * 20, post(ScriptedProvider("an answer " * 10)))
    overflow = ContextOverflowError("Too long.", hint="Shorten.")
    events = run(chat, "and now?", post(ScriptedProvider(ScriptedReply(error=overflow), "fits")))
    turn = events[-1].turn
    assert turn is not None
    assert turn.compaction is not None
    assert turn.compaction.automatic
    assert turn.ledger.calls[0].predicted is not None


def test_excessive_retry_delay_is_not_waited_for() -> None:
    sleep = Sleeping()
    with pytest.raises(RateLimitError):
        run(
            stored(InMemoryStore()),
            "hi",
            post(ScriptedProvider(ScriptedReply(error=limited(99_999.0)), "never"), sleep),
        )
    assert sleep.waits == []


def test_character_split_across_deltas_is_stored_whole() -> None:
    chat = stored(InMemoryStore())
    run(chat, "hi", post(ScriptedProvider(ScriptedReply(text="hi \ud83d\ude00 ok \ud83d", chunk_size=4))))
    assert [record.reply and record.reply.text for record in chat.turns()] == ["hi 😀 ok \ufffd"]


def test_conversation_without_model_uses_model_of_settings() -> None:
    store = InMemoryStore()
    given = load_settings({})
    bare = ConversationSettings(
        prompt_settings=build_prompt_settings(given, make_adapters()), turn_settings=build_turn_settings(given)
    )
    chat = Conversation.open(
        Backend(store=store, clock=Ticking(), adapters=make_adapters(), resolve_settings=lambda _: bare), "chat"
    )
    chat.ask(TurnRequest(text="one"))
    chat.reply("two")
    events = run(stored(store), "three", post(ScriptedProvider("four")))
    assert said(events) == "four"
    assert events[0].turn is not None
    assert events[0].turn.envelope.model == MODEL


def test_message_after_cache_expiry_starts_with_cost_event() -> None:
    sitting = begin(ScriptedReply(text="Noon."), ScriptedReply(text="Again."))
    sitting.clock.advance(600)

    async def send_one() -> list[TurnEvent]:
        return [
            event async for event in TurnRunner(sitting.chat, sitting.post(CLAUDE)).ask(TurnRequest(text="And now?"))
        ]

    told, *rest = asyncio.run(send_one())
    assert told.kind is EventName.CACHE_EXPIRED
    assert told.expired_cache is not None
    assert told.expired_cache.expired
    assert told.expired_cache.folded_tokens <= told.expired_cache.tokens
    assert rest[0].kind is EventName.ENVELOPE
    # Warm again, nothing is said of it.
    assert EventName.CACHE_EXPIRED not in [event.kind for event in (*rest, *asyncio.run(send_one()))]


def test_call_has_phases_of_its_build_also_when_reopened(tmp_path: Path) -> None:
    async def send() -> tuple[ModelCall, ModelCall]:
        url = f"sqlite:///{tmp_path}/chats.db"
        async with lamella.open(url, model="scripted:demo", provider=ScriptedProvider("Noon.")) as engine:
            chat = engine.chat("desks")
            note = Note(path="a.md", text="".join(f"Desk {number} is free.\n" for number in range(5_000)))
            async for _ in chat.send("When?", attach=[note]):
                pass
            sent = chat.ledger()[-1][-1]
        with lamella.open(url) as engine:
            return sent, engine.chat("desks").ledger()[-1][-1]

    sent, stored = asyncio.run(send())
    assert sent.timing.phases.keys() >= {"count", "store"}
    assert sent.timing.phases.keys() <= set(PHASES)
    assert sum(sent.timing.phases.values()) <= (sent.timing.build or 0.0) + 0.001
    assert stored == sent
