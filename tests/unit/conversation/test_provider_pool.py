"""Keep-alives: the last request is sent again if that pays and the settings allow it, and is counted."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from tests.waiting import wait_until

import lamella
from lamella import Note
from lamella.conversation.conversation import Conversation
from lamella.conversation.provider_pool import keep_alive
from lamella.conversation.turn import ModelAnswer, TurnRequest
from lamella.conversation.turn_runner import SendContext
from lamella.core.artifacts.model import ToolDefinition
from lamella.core.log.turn import CacheStateAfterPause, LayoutPlan
from lamella.core.messages import ModelReply, StopReason, ToolCall, ToolOutput, Usage
from lamella.core.values import replace
from lamella.errors import ProviderOverloadedError, SettingError
from lamella.schemas.ledger import expired_cache_to_json
from lamella.stores.memory import InMemoryStore
from lamella.testing import ScriptedProvider, ScriptedReply, SettableClock
from lamella.wiring import open_backend

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
CLAUDE = "anthropic:claude-sonnet-4-5"
LONG = "one word and another " * 2_000
USED = Usage(plain=0, read=8_000, write=0, output=1)
PONG = ScriptedReply(text="P", usage=USED)
LIFETIME = 300
DUE = 285


class Sitting:
    """A stored chat, a clock that goes on while somebody sleeps, and what the provider was asked."""

    def __init__(
        self, *lines: ScriptedReply, model: str = CLAUDE, store: InMemoryStore | None = None, **settings: object
    ) -> None:
        self.clock, self.provider = SettableClock(NOON), ScriptedProvider(*lines)
        self.store = store or InMemoryStore()
        backend = replace(open_backend("memory:"), store=self.store, clock=self.clock, make_key=str)
        self.chat = Conversation.open(backend, "chat", {"model": model, "layout": "auto", **settings})
        self.slept: list[float] = []
        self.on_sleep: Callable[[], None] = lambda: None

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.advance(seconds)
        self.on_sleep()

    def post(self, model: str) -> SendContext:
        return SendContext(
            provider=self.provider,
            clock=self.clock,
            sleep=self.sleep,
            jitter=lambda: 0.0,
            model=model,
            max_answer_tokens=1,
        )

    def say(self, text: str = "What is in it?", **given: object) -> LayoutPlan:
        turn_request = TurnRequest(text=text, **given)  # type: ignore[arg-type]
        turn = self.chat.ask(turn_request, at=self.clock.now())
        self.chat.reply("Words.", at=self.clock.now())
        return turn.envelope.prompt.layout_plan

    def keep(self) -> int:
        return asyncio.run(keep_alive(self.chat, self.post))


def begin(*lines: ScriptedReply, **settings: object) -> Sitting:
    sitting = Sitting(*lines, **settings)  # type: ignore[arg-type]
    sitting.say(attach=(Note(path="a.md", text=LONG).to_artifact(),))
    return sitting


def test_keep_alive_is_off_by_default_and_price_is_offered() -> None:
    sitting = begin()
    assert (sitting.keep(), sitting.provider.requests, sitting.slept) == (0, [], [])
    assert sitting.chat.estimate_cache_expiry() is None
    sitting.clock.advance(LIFETIME * 0.85)
    cold = sitting.chat.estimate_cache_expiry()
    assert cold is not None
    assert cold.keep_alive is not None
    assert cold.keep_alive.due_at == NOON + timedelta(seconds=DUE)
    assert cold.cost is not None
    assert cold.keep_alive.cost is not None
    assert 0 < cold.keep_alive.cost < cold.cost / 5
    body = expired_cache_to_json(cold)
    assert body.keep is not None
    assert body.keep.tokens == cold.keep_alive.tokens


def test_keep_alive_resends_last_prompt_for_one_token() -> None:
    sitting = begin(PONG, keep_alive=1)
    sent = sitting.chat.current_state[0].last_prompt
    assert sent is not None
    assert sitting.keep() == 1
    (request,) = sitting.provider.requests
    assert (request.messages, request.max_output_tokens, request.breakpoints) == (
        sent.messages,
        1,
        sent.layout_plan.breakpoints,
    )
    assert sitting.slept == [DUE]


def test_keep_alive_is_ledger_call_outside_messages() -> None:
    sitting = begin(PONG, keep_alive=1)
    sitting.keep()
    call = sitting.chat.ledger()[-1][-1]
    assert (call.purpose, call.usage, len(sitting.chat.turns())) == ("keep_alive", USED, 1)
    assert call.billed is not None
    assert call.predicted is not None
    # But for what the start of an answer takes in every request.
    assert call.predicted.read > 0.99 * call.predicted.total
    assert sitting.chat.turns()[-1].reply is not None


def test_keep_alive_postpones_expiry_in_plan_and_warning() -> None:
    sitting = begin(PONG, keep_alive=1)
    sitting.keep()
    sitting.clock.advance(LIFETIME * 0.7)
    assert sitting.chat.estimate_cache_expiry() is None
    kept = sitting.say("And then?")
    assert (kept.keep_messages, kept.expiry) == (None, CacheStateAfterPause.KEPT_ALIVE)
    assert kept.cached_message is not None
    lapsed = begin()
    lapsed.clock.advance(DUE + LIFETIME * 0.7)
    assert lapsed.say("And then?").expiry is CacheStateAfterPause.SHORT


@pytest.mark.parametrize("layout", ["auto", "in_place"])
def test_reopened_conversation_knows_of_keep_alive(layout: str) -> None:
    sitting = begin(PONG, keep_alive=1, layout=layout)
    sitting.keep()
    again = Sitting(store=sitting.store, layout=layout)
    at = sitting.clock.now() + timedelta(seconds=LIFETIME * 0.7)
    here, there = (one.chat.preview(TurnRequest(text="And then?"), at=at) for one in (sitting, again))
    assert here == there
    assert here.cache is not None
    assert here.cache.read > 0.9 * here.tokens.total
    sitting.clock.set(at)
    sitting.say("And then?")
    opened = Sitting(store=sitting.store, layout=layout)
    assert opened.chat.current_state[0].cache_history == sitting.chat.current_state[0].cache_history


def test_keep_alives_are_limited_by_setting_and_profit() -> None:
    assert begin(PONG, PONG, PONG, keep_alive=2).keep() == 2
    # Where reading costs half, nothing is worth it.
    facts = begin(keep_alive=2, model="openai:gpt-4o")
    assert facts.keep() == 0
    twice = begin(PONG, PONG, PONG, keep_alive=2)
    twice.keep()
    assert (twice.keep(), len(twice.provider.requests)) == (0, 2)


@pytest.mark.parametrize("model", ["local", "deepseek:deepseek-v4"])
def test_cache_without_time_limit_is_not_kept_alive(model: str) -> None:
    sitting = begin(keep_alive=2, model=model)
    assert (sitting.keep(), sitting.chat.plan_keep_alive()) == (0, None)


def test_prompt_below_cache_minimum_is_not_kept_alive() -> None:
    sitting = Sitting(keep_alive=2)
    sitting.say()
    assert sitting.keep() == 0


def test_new_question_ends_keep_alive() -> None:
    sitting = begin(PONG, keep_alive=2)

    def ask() -> None:
        sitting.say("Meanwhile?")

    sitting.on_sleep = ask
    assert (sitting.keep(), sitting.provider.requests) == (0, [])


ASK_PERSON = ToolCall(id="c1", name="ask_person", arguments="{}")


def begin_waiting(*lines: ScriptedReply, **settings: object) -> Sitting:
    """A chat whose model called a tool that waits for a person."""
    sitting = Sitting(*lines, **settings)  # type: ignore[arg-type]
    turn_request = TurnRequest(
        text="May I?",
        attach=(Note(path="a.md", text=LONG).to_artifact(),),
        tools=(ToolDefinition(name="ask_person", description="", parameters="{}"),),
    )
    sitting.chat.ask(turn_request, at=sitting.clock.now())
    called = ModelReply(text="", stop=StopReason.TOOL_CALLS, calls=(ASK_PERSON,))
    sitting.chat.reply(ModelAnswer(reply=called), at=sitting.clock.now())
    return sitting


def test_keep_alive_while_a_tool_waits_for_a_person() -> None:
    sitting = begin_waiting(PONG, PONG, PONG, keep_alive=2)
    sent = sitting.chat.current_state[0].last_prompt
    assert sent is not None
    assert sitting.keep() == 2
    assert [request.messages for request in sitting.provider.requests] == [sent.messages] * 2
    assert sorted(call.purpose for call in sitting.chat.ledger()[-1]) == ["answer", "keep_alive", "keep_alive"]
    sitting.clock.advance(LIFETIME * 0.7)
    turn = sitting.chat.submit_tool_outputs([ToolOutput(call="c1", output="Yes.")], at=sitting.clock.now())
    assert turn.cache is not None
    assert turn.cache.read > 0.9 * turn.tokens.total
    assert [message.text for message in turn.messages if message.call_id] == ["Yes."]


def test_keep_alive_while_waiting_is_off_by_default_and_priced() -> None:
    sitting = begin_waiting()
    assert (sitting.keep(), sitting.provider.requests) == (0, [])
    sitting.clock.advance(LIFETIME * 0.85)
    planned = sitting.chat.plan_keep_alive(at=sitting.clock.now())
    assert planned is not None
    assert planned.due_at == NOON + timedelta(seconds=DUE)
    assert planned.cost is not None
    warning = sitting.chat.estimate_cache_expiry()
    assert warning is not None
    assert warning.keep_alive == planned


def test_answer_of_the_person_ends_keep_alive() -> None:
    sitting = begin_waiting(PONG, keep_alive=2)

    def answer() -> None:
        sitting.chat.submit_tool_outputs([ToolOutput(call="c1", output="Yes.")], at=sitting.clock.now())

    sitting.on_sleep = answer
    assert (sitting.keep(), sitting.provider.requests) == (0, [])
    # A model answers now, so there is nothing to keep.
    assert sitting.chat.plan_keep_alive(at=sitting.clock.now()) is None
    assert sitting.chat.build_keep_alive_request() is None


def test_each_request_of_a_turn_has_its_own_keep_alives() -> None:
    sitting = begin_waiting(PONG, PONG, keep_alive=1)
    assert sitting.keep() == 1
    sitting.chat.submit_tool_outputs([ToolOutput(call="c1", output="Yes.")], at=sitting.clock.now())
    called = ModelReply(text="", stop=StopReason.TOOL_CALLS, calls=(replace(ASK_PERSON, id="c2"),))
    sitting.chat.reply(ModelAnswer(reply=called), at=sitting.clock.now())
    assert sitting.keep() == 1
    assert len(sitting.provider.requests[1].messages) == len(sitting.provider.requests[0].messages) + 2


@pytest.mark.parametrize("allowed", [0, 1])
def test_running_agent_keeps_its_cache_while_a_tool_waits(allowed: int) -> None:
    provider = ScriptedProvider(ScriptedReply(calls=(ASK_PERSON,)), "Done.")
    seen: list[bool] = []

    async def run() -> None:
        def ask_person() -> str:
            """Ask a person."""
            if allowed:
                wait_until(lambda: chat.is_kept_alive, "a keep-alive is planned")
            seen.append(chat.is_kept_alive)
            return "Yes."

        async with lamella.open("memory:", model=CLAUDE, provider=provider) as engine:
            chat = await engine.conversation("demo", layout="auto", keep_alive=allowed)
            note = Note(path="a.md", text=LONG)
            async for _ in chat.send("May I?", attach=[note], runner="agent", tools=[ask_person]):
                pass
            seen.append(chat.is_kept_alive)

    asyncio.run(run())
    assert seen == [bool(allowed), False]


class Settled:
    """A chat that must not be read again."""

    def __init__(self, chat: Conversation) -> None:
        self._chat = chat
        self.is_kept_alive = False

    def reload(self) -> None:
        raise AssertionError("it was read anew")

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a chat has
        return getattr(self._chat, name)


def test_keep_alive_during_new_question_sends_nothing() -> None:
    sitting = begin(PONG, keep_alive=2)

    def ask() -> None:
        sitting.chat.ask(TurnRequest(text="Meanwhile?"), at=sitting.clock.now())

    sitting.on_sleep = ask
    assert asyncio.run(keep_alive(cast("Conversation", Settled(sitting.chat)), sitting.post)) == 0
    assert sitting.provider.requests == []


def test_cache_expired_during_sleep_is_not_rewritten() -> None:
    sitting = begin(PONG, keep_alive=2)
    sitting.on_sleep = lambda: sitting.clock.advance(LIFETIME)
    assert (sitting.keep(), sitting.provider.requests) == (0, [])


def test_failed_keep_alive_is_raised_and_changes_nothing() -> None:
    sitting = begin(ScriptedReply(error=ProviderOverloadedError("No.", hint="Wait.", wait=None)), keep_alive=1)
    sitting.provider = ScriptedProvider(
        *[ScriptedReply(error=ProviderOverloadedError("No.", hint="Wait.", wait=None))] * 9
    )
    with pytest.raises(ProviderOverloadedError):
        sitting.keep()
    assert [call.purpose for calls in sitting.chat.ledger() for call in calls] == []


def test_keep_alive_runs_as_background_task() -> None:
    provider = ScriptedProvider("Words.", PONG)

    async def run() -> tuple[int, list[str]]:
        async with lamella.open("memory:", model=CLAUDE, provider=provider) as engine:
            conversation: Conversation = engine.chat("demo")
            async for _ in conversation.send("What is in it?", attach=[Note(path="a.md", text=LONG)]):
                pass
            off = await conversation.keep_alive()
            conversation.set(keep_alive=1)
            waits = asyncio.ensure_future(conversation.keep_alive())
            await asyncio.sleep(0.05)
            waits.cancel()
            return off, [call.purpose for call in conversation.ledger()[-1]]

    assert asyncio.run(run()) == (0, ["answer"])


def test_concurrent_keep_alives_send_at_most_two() -> None:
    sitting = begin(*[PONG] * 6, keep_alive=2)

    async def keep() -> list[int]:
        return await asyncio.gather(*[keep_alive(sitting.chat, sitting.post) for _ in range(3)])

    assert asyncio.run(keep()) == [2, 0, 0]
    assert len(sitting.provider.requests) == 2
    # Who goes on keeping it is not kept from it later.
    sitting.say("And now?")
    assert sitting.keep() == 2


def test_keep_alives_and_questions_of_others_count() -> None:
    sitting = begin(*[PONG] * 4)
    other = Sitting(*[PONG] * 4, store=sitting.store)
    other.clock = sitting.clock
    assert other.chat.head == sitting.chat.head
    for _ in range(3):
        sitting.clock.advance(DUE)
        for one in (sitting, other):
            asyncio.run(keep_alive(one.chat, one.post, once=True))
    assert (len(sitting.provider.requests), len(other.provider.requests)) == (2, 0)
    sitting.say("And now?")
    sitting.clock.advance(DUE)
    assert asyncio.run(keep_alive(other.chat, other.post, once=True)) == 0


def test_more_than_two_are_refused() -> None:
    with pytest.raises(SettingError, match="Invalid keep_alive: 3"):
        Sitting(keep_alive=3)
