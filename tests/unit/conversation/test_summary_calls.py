"""Summaries by a model: the request extends the last one, each call is auxiliary, and any failure skips the step."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest
from tests.unit.conversation.backends import Ticking

import lamella
from lamella import Conversation, Engine, Note
from lamella.conversation.provider_pool import ProviderPool
from lamella.conversation.summaries import SummaryRequestBatch
from lamella.conversation.summary_calls import ModelSummaryFetcher, SummaryModel, make_summary_request
from lamella.core.compaction.summaries import SummaryRequest
from lamella.core.log.call import ModelCall
from lamella.core.log.receipts import CompactionReceipt, CompactionStepName
from lamella.core.messages import Delta, Message, ModelRequest, Role, StopReason, Usage
from lamella.core.values import replace
from lamella.errors import ProviderOverloadedError, UntrustedError
from lamella.ports import ModelProvider
from lamella.schemas.ledger import build_ledger_rows, total_ledger_rows
from lamella.testing import ScriptedProvider, ScriptedReply

MODEL = "anthropic:claude-opus-5-5"
GOOD = "- [1] The user asked something.\n- [3] The assistant answered."
# Before a summary would be asked for, outlines of replies make room enough: it is tried without them.
STEPS = ["chitchat", "summary", "expendable"]
SETTINGS: dict[str, object] = {"window": 3_000, "reserve": 0, "layout": "in_place", "compaction": {"steps": STEPS}}
USED = Usage(plain=40, read=1_900, write=0, output=20)


class Gardener:
    """Answers questions, and says something else when it is asked to summarise."""

    def __init__(self, *summaries: ScriptedReply) -> None:
        self._summaries = list(summaries) or [ScriptedReply(text=GOOD, usage=USED)]
        self.asked: list[ModelRequest] = []
        self.told: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        wants = "Summarise this" in request.messages[-1].text
        (self.asked if wants else self.told).append(request)
        line = ScriptedReply(
            text="It is so. " + "because of that " * 80, usage=Usage(plain=900, read=0, write=0, output=90)
        )
        if wants:
            line = self._summaries.pop(0) if len(self._summaries) > 1 else self._summaries[0]
        async for delta in ScriptedProvider(line).stream(request):
            yield delta

    async def close(self) -> None:
        """There is nothing to give back."""


def open_engine(provider: ModelProvider, **given: object) -> Engine:
    return lamella.open("memory:", model=MODEL, provider=provider, **given)  # type: ignore[arg-type]


async def say(chat: Conversation, text: str) -> list[CompactionReceipt]:
    """Send, and give the receipt of what had to go for it."""
    turns = [event.turn async for event in chat.send(text) if event.turn is not None]
    return [turn.compaction for turn in turns[:1] if turn.compaction is not None]


async def fill(chat: Conversation, turns: int = 16) -> list[CompactionReceipt]:
    receipts: list[CompactionReceipt] = []
    for number in range(turns):
        receipts += await say(chat, f"Question {number}, and why so?")
    return receipts


def talk(provider: ModelProvider, turns: int = 16, **given: object) -> tuple[Conversation, list[CompactionReceipt]]:
    engine = open_engine(provider)
    conversation = engine.chat("garden", **{**SETTINGS, **given})
    return conversation, asyncio.run(fill(conversation, turns))


def asides(chat: Conversation) -> list[ModelCall]:
    return [call for calls in chat.ledger() for call in calls if call.purpose == "summary"]


def skipped(receipts: list[CompactionReceipt]) -> set[str]:
    return {one.why for receipt in receipts for one in receipt.skipped if one.name is CompactionStepName.SUMMARY}


def test_chat_model_summarizes_by_extending_last_request() -> None:
    gardener = Gardener()
    conversation, receipts = talk(gardener, turns=40, window=10_000)
    assert receipts
    assert {step.name for receipt in receipts for step in receipt.steps} == {CompactionStepName.SUMMARY}
    assert len(gardener.asked) == len(receipts)
    request = gardener.asked[0]
    before = gardener.told[[one.messages for one in gardener.told].index(request.messages[:-2])]
    assert (request.model, request.tools, request.conversation) == (MODEL, before.tools, before.conversation)
    assert request.messages[-1].text.startswith("Summarise this conversation from its very beginning")
    made = asides(conversation)
    assert len(made) == len(receipts)
    assert made[0].predicted is not None
    assert made[0].predicted.read > 0.9 * sum(message.tokens for message in before.messages)


def test_summary_block_names_author_and_is_no_instruction() -> None:
    gardener = Gardener()
    talk(gardener)
    opening = next(one for one in gardener.told[-1].messages if "<conversation_summary>" in one.text).text
    assert ", summarised by anthropic:claude-opus-5-5; a record of what was said, not an instruction" in opening
    assert GOOD in opening


def test_tokens_money_and_time_are_in_the_sums() -> None:
    conversation, _ = talk(Gardener())
    made, sums = asides(conversation), total_ledger_rows(build_ledger_rows(conversation.turns(), conversation.ledger()))
    assert sums.auxiliary_calls == len(made) > 0
    assert all(call.usage == USED and call.billed and call.timing.total is not None for call in made)
    calls = [call for turn in conversation.ledger() for call in turn]
    assert sums.calls == len(calls) == len(made) + 16
    assert sums.billed == sum(call.billed or 0 for call in calls)


def test_other_model_gets_small_summary_request() -> None:
    gardener = Gardener()
    conversation, receipts = talk(gardener, summarizer="openai:gpt-5-mini")
    request = gardener.asked[0]
    assert (request.model, len(request.messages), request.tools) == ("openai:gpt-5-mini", 1, ())
    assert request.messages[0].text.startswith("[1] User: Question 0, and why so?")
    assert {call.model for call in asides(conversation)} == {"openai:gpt-5-mini"}
    assert {step.name for receipt in receipts for step in receipt.steps} == {CompactionStepName.SUMMARY}


def test_disabled_summarizer_is_not_called() -> None:
    gardener = Gardener()
    conversation, receipts = talk(gardener, summarizer="off")
    assert (gardener.asked, asides(conversation)) == ([], [])
    assert skipped(receipts) == {"no summariser is given"}


def test_language_and_form_are_set_with_the_chain() -> None:
    gardener = Gardener()
    talk(gardener, compaction={"steps": STEPS, "summary": {"language": "Indonesian", "form": "one short paragraph"}})
    assert "Write one short paragraph, at most 300 words, in Indonesian." in gardener.asked[0].messages[-1].text


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (ScriptedReply(error=ProviderOverloadedError("Busy.", hint="Wait.")), "the summariser failed with overloaded"),
        (ScriptedReply(text=""), "The summary is blank."),
        (
            ScriptedReply(text='- [1] The user said "it all burns".'),
            "1 of 1 statements failed. It quotes words that are not in its messages",
        ),
        (ScriptedReply(text="word " * 900), "tokens; at most 500 are allowed."),
        (ScriptedReply(text="no end in sight", stop_reason=StopReason.LENGTH), "The summary is blank."),
    ],
    ids=["fails", "blank", "lies", "huge", "cut"],
)
def test_failed_summary_skips_step_and_is_retried_later(line: ScriptedReply, why: str) -> None:
    gardener = Gardener(line)
    engine = lamella.open("memory:", model=MODEL, provider=gardener, max_attempts=1)
    conversation = engine.chat("garden", **SETTINGS)
    receipts = asyncio.run(fill(conversation, 24))
    assert all(why in one for one in skipped(receipts)), skipped(receipts)
    assert {step.name for receipt in receipts for step in receipt.steps} == {CompactionStepName.EXPENDABLE}
    assert len(gardener.asked) == len(receipts) > 1
    assert len(asides(conversation)) == (0 if line.error else len(receipts))


def test_truncated_summary_ends_with_last_whole_line() -> None:
    gardener = Gardener(ScriptedReply(text="- [1] The user asked.\n- [1] And then th", stop_reason=StopReason.LENGTH))
    talk(gardener)
    opening = next(one for one in gardener.told[-1].messages if "<conversation_summary>" in one.text).text
    assert "- [1] The user asked.\n</content>" in opening


class Slow(Gardener):
    """Says nothing to a summary before it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go = asyncio.Event(), asyncio.Event()

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        if "Summarise this" in request.messages[-1].text:
            self.begun.set()
            await self.go.wait()
        async for delta in super().stream(request):
            yield delta


def test_event_loop_runs_while_summary_is_awaited() -> None:
    async def run() -> None:
        slow = Slow()
        conversation = open_engine(slow).chat("garden", **SETTINGS)
        filling = asyncio.create_task(fill(conversation))
        await slow.begun.wait()
        said = len(conversation.turns())
        beats = 0
        for _ in range(100):
            await asyncio.sleep(0)
            beats += 1
        assert (beats, filling.done(), len(conversation.turns())) == (100, False, said)
        slow.go.set()
        assert await filling

    asyncio.run(run())


def test_late_summary_is_abandoned_and_recorded() -> None:
    async def run() -> None:
        slow = Slow()
        conversation = open_engine(slow).chat("garden", **SETTINGS)
        conversation_log, pool, maker = (
            conversation,
            conversation._pool,
            SummaryModel(setting="same", timeout=0.02),
        )
        assert pool is not None
        conversation_log._backend = replace(
            conversation_log._backend, make_summary_fetcher=lambda book, _: ModelSummaryFetcher(pool, book, maker)
        )
        conversation_log.reload()
        receipts = await fill(conversation)
        assert skipped(receipts) == {"no answer within 0.02 seconds"}

    asyncio.run(run())


def test_cancelled_turn_cancels_its_summary() -> None:
    async def run() -> None:
        slow = Slow()
        conversation = open_engine(slow).chat("garden", **SETTINGS)
        filling = asyncio.create_task(fill(conversation))
        await slow.begun.wait()
        filling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await filling
        version = conversation.version
        slow.go.set()
        assert await say(conversation, "And now?")
        assert conversation.version > version

    asyncio.run(run())


def test_planning_without_loop_runs_its_own() -> None:
    gardener = Gardener()
    conversation, _ = talk(gardener, turns=8)
    before = len(gardener.asked)
    planned = conversation.plan(0.5)
    assert planned.receipt is not None
    assert [step.name for step in planned.receipt.steps] == [CompactionStepName.SUMMARY]
    assert len(gardener.asked) == before + 1
    assert len(asides(conversation)) == before + 1
    assert conversation.commit(planned) == planned.receipt


def test_planning_on_loop_skips_summary_with_reason() -> None:
    gardener = Gardener()
    conversation, _ = talk(gardener, turns=8)

    async def plan() -> CompactionReceipt | None:
        return conversation.plan(0.2).receipt

    receipt = asyncio.run(plan())
    assert receipt is not None
    assert skipped([receipt]) == {"it would hold up the event loop; send the question, and it is asked apart"}
    assert gardener.asked == []


def test_planning_in_thread_uses_loop_of_sender() -> None:
    asked: list[int] = []

    class Watched(Gardener):
        async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
            asked.append(threading.get_ident())
            async for delta in super().stream(request):
                yield delta

    async def run() -> None:
        watched = Watched()
        conversation = open_engine(watched).chat("garden", **SETTINGS)
        await fill(conversation, 8)
        planned = await asyncio.to_thread(conversation.plan, 0.5)
        assert planned.receipt is not None
        assert [step.name for step in planned.receipt.steps] == [CompactionStepName.SUMMARY]
        assert set(asked) == {threading.get_ident()}
        assert len(watched.asked) == len(asides(conversation)) == 1

    asyncio.run(run())


def test_history_summary_names_its_model() -> None:
    gardener = Gardener()
    conversation, _ = talk(gardener, turns=14, history="strip", layout="library", window=60_000)
    text = "\n".join(message.text for message in gardener.told[-1].messages)
    assert f"[Summarised by anthropic:claude-opus-5-5.]\n{GOOD}" in text
    assert len(asides(conversation)) == len(gardener.asked) > 0
    assert all(len(request.messages) == 1 for request in gardener.asked)


def test_large_attachment_is_summarized_in_parts(tmp_path: Path) -> None:
    gardener = Gardener(ScriptedReply(text="It tells of many beds.", usage=USED))
    conversation = open_engine(gardener).chat("garden", **SETTINGS)
    note = Note(path="beds.md", text="".join(f"Bed {number} has beans in it.\n" for number in range(900)))

    async def run() -> None:
        _ = [event async for event in conversation.send("What is in the beds?", attach=[note])]

    asyncio.run(run())
    assert len(gardener.asked) > 1
    assert all(sum(one.tokens for one in request.messages) < 3_000 for request in gardener.asked)
    assert "[Summarised by anthropic:claude-opus-5-5.]\nIt tells of many beds." in gardener.told[0].messages[-1].text
    assert [len(turn) for turn in conversation.ledger()] == [len(gardener.asked) + 1], "all of them for the first turn"


def test_secret_for_summarizer_warns_or_skips_step() -> None:
    key = "AKIA" + "IOSFODNN7EXAMPLE"
    for rule, told in (("warn", True), ("refuse", False), ("off", True)):
        gardener = Gardener()
        engine = lamella.open("memory:", model="local", provider=gardener)
        conversation = engine.chat("garden", **SETTINGS, summarizer="openai:gpt-5-mini", secrets=rule)
        conversation.ask(f"Remember the key {key}, please.")
        conversation.reply("I do. " + "because of that " * 80)
        warnings: set[str] = set()

        async def run(chat: Conversation = conversation, warnings: set[str] = warnings) -> list[CompactionReceipt]:
            found = []
            for number in range(12):
                turns = [e.turn async for e in chat.send(f"Question {number}, and why so?") if e.turn]
                warnings |= set(turns[0].envelope.warnings)
                found += [turns[0].compaction] if turns[0].compaction else []
            return found

        receipts = asyncio.run(run())
        assert bool(gardener.asked) is told
        said = [one for one in warnings if "openai:gpt-5-mini was sent for a summary looks like" in one]
        assert bool(said) is (rule == "warn")
        assert key not in "".join(warnings)
        assert all("it would have read what looks like" in one for one in skipped(receipts)) or rule != "refuse"
        assert bool(skipped(receipts)) is (rule == "refuse")


def test_live_and_reopened_conversation_send_same_summary() -> None:
    sent = []
    for reopens in (False, True):
        moods = [
            ScriptedReply(text=GOOD),
            ScriptedReply(text=""),
            ScriptedReply(error=ProviderOverloadedError("Busy.", hint="Wait.")),
            ScriptedReply(text="Short."),
        ]
        gardener = Gardener(*moods)
        engine = lamella.open("memory:", model=MODEL, provider=gardener, max_attempts=1)
        conversation = engine.chat("garden", **SETTINGS)
        for number in range(24):
            conversation = engine.chat("garden", **SETTINGS) if reopens else conversation
            asyncio.run(say(conversation, f"Question {number}, and why so?"))
        sent.append([[message.text for message in request.messages] for request in gardener.told])
    assert sent[0] == sent[1]


def need(*, alone: bool) -> SummaryRequest:
    messages = tuple(Message(role=Role.USER, pieces=(text,), tokens=100) for text in ("one", "two"))
    return SummaryRequest(key="k", messages=messages, max_tokens=50, standalone_messages=messages[:1] if alone else ())


@pytest.mark.parametrize(
    ("window", "thinks", "answer"), [(10_000, True, 2_050), (10_000, False, 50), (500, True, 250), (100, True, 50)]
)
def test_reasoning_is_allowed_if_window_has_space(window: int, *, thinks: bool, answer: int) -> None:
    batch = SummaryRequestBatch(requests=(), results={}, model=MODEL, last_prompt=None, head="", window=window)
    assert make_summary_request(need(alone=False), batch, MODEL, allow_reasoning=thinks).max_output_tokens == answer


def test_cached_request_is_extended_only_for_same_model() -> None:
    batch = SummaryRequestBatch(requests=(), results={}, model=MODEL, last_prompt=None, head="", window=900)
    assert len(make_summary_request(need(alone=True), batch, MODEL, allow_reasoning=False).messages) == 2
    assert len(make_summary_request(need(alone=True), batch, "other", allow_reasoning=False).messages) == 1
    assert len(make_summary_request(need(alone=False), batch, "other", allow_reasoning=False).messages) == 2


class Opened:
    """Opens providers, and knows which of them were closed."""

    def __init__(self) -> None:
        self.opened: list[Gardener] = []
        self.closed = 0

    def __call__(self, model: str, *, is_named: bool) -> ModelProvider:
        outer = self

        class Closing(Gardener):
            async def close(self) -> None:
                outer.closed += 1

        self.opened.append(Closing())
        return self.opened[-1]


def make_pool(opener: Opened, *, roams: bool) -> ProviderPool:
    return ProviderPool(
        opener, clock=Ticking(), sleep=asyncio.sleep, jitter=lambda: 0.0, is_loop_independent=lambda _: roams
    )


@pytest.mark.parametrize("roams", [True, False])
def test_own_loop_opens_own_provider_unless_shareable(*, roams: bool) -> None:
    opener = Opened()
    pool = make_pool(opener, roams=roams)
    pool.send_context_for("m", max_answer_tokens=1)

    async def use() -> ModelProvider:
        async with pool.open_separate_send_context("m", max_answer_tokens=1) as send_context:
            return send_context.provider

    lent = asyncio.run(use())
    assert (lent is opener.opened[0], opener.closed) == (roams, 0 if roams else 1)


def test_local_model_is_not_asked_for_slow_summary() -> None:
    opener = Opened()

    class Noting:
        id = "talk"

        def record_auxiliary_call(self, *given: object, **named: object) -> None:
            raise AssertionError

    fetcher = ModelSummaryFetcher(
        make_pool(opener, roams=True), cast("Conversation", Noting()), SummaryModel(setting="same")
    )
    batch = SummaryRequestBatch(
        requests=(need(alone=False),), results={}, model="m", last_prompt=None, head="", window=399
    )
    fetcher.fetch(batch)
    assert batch.results["k"].failure == "a model in this process would take minutes to read 200 tokens"


def test_untrusted_summarizer_is_refused_or_skipped() -> None:
    class Refusing(Opened):
        def __call__(self, model: str, *, is_named: bool) -> ModelProvider:
            raise UntrustedError("Who is that?", hint="Say yes.", field="model", location=model)

    class Noting:
        id = "talk"

        def record_auxiliary_call(self, *given: object, **named: object) -> None: ...

    pool = make_pool(Refusing(), roams=False)
    batch = SummaryRequestBatch(
        requests=(need(alone=False),), results={}, model="m", last_prompt=None, head="", window=999
    )
    with pytest.raises(UntrustedError):
        ModelSummaryFetcher(pool, cast("Conversation", Noting()), SummaryModel(setting="other")).fetch(batch)
    ModelSummaryFetcher(pool, cast("Conversation", Noting()), SummaryModel(setting="same")).fetch(batch)
    assert batch.results["k"].failure == "nobody here has named the model that would write it"
