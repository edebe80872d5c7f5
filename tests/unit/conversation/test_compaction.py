"""Fetching summaries: a few at a time, each once, and the turn continues after any failure."""

import asyncio
from collections.abc import Sequence
from threading import Event, Lock
from time import monotonic, sleep

import pytest
from tests.waiting import HANG_SECONDS

from lamella import Message, Note, Turn
from lamella.conversation.backend import Backend, ConversationSettings
from lamella.conversation.compaction import SummariesNeeded, run_restarting_for_summaries
from lamella.conversation.conversation import Conversation
from lamella.conversation.summaries import CallbackSummaryFetcher, SummaryRequestBatch
from lamella.conversation.threads import Workers
from lamella.core.log.receipts import CompactionReceipt, CompactionStepName
from lamella.core.values import replace
from lamella.ports import Summarizer
from lamella.settings.rules import build_prompt_settings, build_turn_settings
from lamella.testing import InMemoryStore, SettableClock
from lamella.wiring import load_settings, open_adapters

WINDOW = 3_000


def talk(summarizer: Summarizer | None, *, timeout: float = 60, **given: object) -> Conversation:
    """A conversation in a small window, with a summariser and how long it is waited for."""
    adapters = replace(open_adapters(None), summarizer=summarizer, summary_timeout=timeout)
    # Outlines would make room enough before anybody is asked for a summary.
    chain = {"steps": ["summary", "expendable"]}
    settings = load_settings({"window": WINDOW, "reserve": 0, "layout": "in_place", "compaction": chain, **given})
    configured = ConversationSettings(
        prompt_settings=build_prompt_settings(settings, adapters), turn_settings=build_turn_settings(settings)
    )
    backend = Backend(
        store=InMemoryStore(), clock=SettableClock(), adapters=adapters, resolve_settings=lambda _: configured
    )
    return Conversation.open(backend, "chat")


def fill(chat: Conversation, turns: int = 40) -> list[CompactionReceipt]:
    """Discourse until something had to go several times; the receipts of that."""
    receipts: list[CompactionReceipt] = []
    for number in range(turns):
        turn = chat.ask(f"Question {number}, and why so?")
        assert turn.tokens.total <= 0.95 * WINDOW
        receipts += [turn.compaction] if turn.compaction else []
        chat.reply(f"Answer {number}. " + "because of that " * 40)
    return receipts


def skipped(receipts: list[CompactionReceipt]) -> set[str]:
    return {one.why for receipt in receipts for one in receipt.skipped if one.name is CompactionStepName.SUMMARY}


class Saying:
    """Answers with a text, or with whatever else it is given."""

    def __init__(self, answer: object = "- [1] The user asked something.") -> None:
        self._answer = answer
        self.asked: list[Sequence[Message]] = []

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> str:
        self.asked.append(messages)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer  # type: ignore[return-value]


class Hanging:
    """Never answers while the test lasts."""

    def __init__(self) -> None:
        self.over = Event()

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> str:
        self.over.wait(30)
        return "Too late."


def test_good_summary_is_requested_and_used() -> None:
    saying = Saying()
    receipts = fill(talk(saying))
    assert receipts
    assert all(step.name is CompactionStepName.SUMMARY for receipt in receipts for step in receipt.steps)
    assert len(saying.asked) == len(receipts)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (RuntimeError("out for lunch"), "the summariser failed with RuntimeError"),
        (KeyError(), "the summariser failed with KeyError"),
        (None, "the answer is not a text"),
        (b"bytes", "the answer is not a text"),
        ("", "The summary is blank."),
    ],
)
def test_failed_summary_is_reported_and_other_steps_run(answer: object, why: str) -> None:
    receipts = fill(talk(Saying(answer)))
    assert skipped(receipts) == {why}
    assert {step.name for receipt in receipts for step in receipt.steps} == {CompactionStepName.EXPENDABLE}


def test_hanging_summarizer_is_awaited_until_timeout() -> None:
    hanging = Hanging()
    begun = monotonic()
    receipts = fill(talk(hanging, timeout=0.05), turns=20)
    assert monotonic() - begun < 10
    assert skipped(receipts) == {"no answer within 0.05 seconds"}
    hanging.over.set()


def test_rejected_summary_is_requested_again_once_next_time() -> None:
    saying = Saying("")
    chat = talk(saying)
    fill(chat, turns=10)
    asked = len(saying.asked)
    for _ in range(3):
        assert chat.plan(0.2).receipt is not None
    assert len(saying.asked) == asked + 3


def test_plan_that_fetched_a_summary_is_committed_without_another() -> None:
    saying = Saying()
    chat = talk(saying)
    fill(chat, turns=10)
    asked = len(saying.asked)
    planned = chat.plan(0.2)
    assert len(saying.asked) == asked + 1
    assert chat.commit(planned) == planned.receipt
    assert len(saying.asked) == asked + 1


class Crowd:
    """Counts how many are at work at the same time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._here = 0
        self.most = 0
        self.times = 0

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> str:
        with self._lock:
            self._here += 1
            self.times += 1
            self.most = max(self.most, self._here)
        sleep(0.02)
        with self._lock:
            self._here -= 1
        return "In short."


def test_at_most_three_summaries_run_at_a_time() -> None:
    crowd = Crowd()
    chat = talk(crowd, compaction={"summary": {"item": 200}})
    turn: Turn = chat.ask("All of it?", attach=[Note(path=f"{n}.md", text=f"word{n} " * 600) for n in range(8)])
    assert crowd.times == 8
    assert crowd.most == 3
    assert turn.tokens.total <= 0.95 * WINDOW


class Threadless(CallbackSummaryFetcher):
    def fetch(self, batch: SummaryRequestBatch) -> None:
        raise OSError("no more threads")


def test_failure_of_batch_is_raised_to_waiter() -> None:
    batch = SummaryRequestBatch(requests=(), results={}, model=None, last_prompt=None, head="", window=1)

    def work() -> None:
        raise SummariesNeeded(Threadless(Saying(), timeout=1), batch)

    async def wait() -> None:
        async with asyncio.timeout(HANG_SECONDS):
            await run_restarting_for_summaries(work, Workers().run)

    with pytest.raises(OSError, match="no more threads"):
        asyncio.run(wait())
