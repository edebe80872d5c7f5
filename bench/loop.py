"""What many chats at once do on one store: how long they hold up the event loop, and how many turns they get done.

The one beside a program that only waits, the other beside one that only appends, one after another, in the same run:
what turns write, and single events.
"""

import asyncio
import time
from collections.abc import Coroutine, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import lamella
from lamella.core.log.events.kinds import EventBatch, EventKind, EventRecord
from lamella.stores.hash_chain import generate_key
from lamella.stores.open_store import open_store
from lamella.testing import ScriptedProvider

CHATS = 100
TURNS = 20
QUICK_TURNS = 5
# Looked up here: what it imports is a program's start and not its work.
_open = lamella.open
# Appends before and after the turns that they are held against: the disk of a shared machine comes and goes.
_APPENDS = 250
# How often the loop is looked at, and for how long where nothing goes on.
_LOOK = 0.001
_IDLE = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """How much later than it was asked for a task was run again, in seconds."""

    usual: float
    longest: float
    seconds: float


async def _measure(work: Coroutine[Any, Any, None]) -> Gaps:
    """The gaps of the loop while some work goes on; ``usual`` is the 99th percentile."""
    gaps: list[float] = []

    async def look() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(_LOOK)
            gaps.append(time.perf_counter() - before - _LOOK)

    looking = asyncio.create_task(look())
    begun = time.perf_counter()
    await work
    seconds = time.perf_counter() - begun
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)
    ordered = sorted(gaps)
    return Gaps(usual=ordered[int(len(ordered) * 0.99)], longest=ordered[-1], seconds=seconds)


async def _talk(engine: lamella.Engine, name: str, turns: int) -> None:
    conversation = await engine.conversation(name)
    for number in range(turns):
        async for _ in conversation.send(f"Question {number}?"):
            # A model takes its time between two words; other tasks go on then.
            await asyncio.sleep(0)


async def _talk_all(url: str, chats: int, turns: int, *, about: str) -> None:
    """Send turns in as many new conversations: what was said in others is not theirs to carry."""
    script = ScriptedProvider(*["Answer."] * (chats * turns))
    async with _open(url, model="scripted:loop", provider=script) as engine:
        await asyncio.gather(*(_talk(engine, f"{about} {number}", turns) for number in range(chats)))


def measure_gaps(url: str, *, chats: int = CHATS, turns: int = TURNS) -> tuple[Gaps, Gaps]:
    """The gaps of an idle program, and of one that sends so many chats at once, in the same run."""

    async def both() -> tuple[Gaps, Gaps]:
        return await _measure(asyncio.sleep(_IDLE)), await _measure(_talk_all(url, chats, turns, about="gaps"))

    return asyncio.run(both())


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """How much is done in a second: turns by many tasks at once, what they write by one program, and single appends.

    ``raw`` counts turns of which only the events are appended, as they were in a chat; ``appends`` one event each.
    ``work`` is the processor's time that a turn of the many takes, in seconds.
    """

    turns: float
    raw: float
    appends: float
    work: float


def measure_rates(url: str, *, tasks: int = CHATS, turns: int = QUICK_TURNS) -> Rates:
    """Turns of many tasks, between two rows of appends to the same store."""
    asyncio.run(_talk_all(url, 1, turns, about="first"))
    written = _read_appends(url, "first 0")
    raw, single = _write_all(url, written), _append_all(url, "before")
    begun, used = time.perf_counter(), time.process_time()
    asyncio.run(_talk_all(url, tasks, turns, about="rates"))
    seconds, work = time.perf_counter() - begun, time.process_time() - used
    raw, single = raw + _write_all(url, written), single + _append_all(url, "after")
    return Rates(
        turns=tasks * turns / seconds,
        # Two appends are one turn.
        raw=_APPENDS / raw,
        appends=2 * _APPENDS / single,
        work=work / (tasks * turns),
    )


def _read_appends(url: str, name: str) -> list[tuple[EventRecord, ...]]:
    """The events of a conversation as they were appended: a question or an answer is the last of an append."""
    with closing(open_store(url)) as store:
        found = store.find_conversation(name)
        assert found is not None, "it was written just now"
        appends: list[tuple[EventRecord, ...]] = [()]
        for record in store.load(found.conversation):
            appends[-1] += (record,)
            if record.kind in (EventKind.MESSAGE, EventKind.REPLY):
                appends.append(())
    return appends[:-1]


def _write_all(url: str, appends: Sequence[tuple[EventRecord, ...]]) -> float:
    """How long it takes to append what turns wrote, again and again, each time to a conversation of its own."""
    with closing(open_store(url)) as store:
        key = ""
        begun = time.perf_counter()
        for number in range(_APPENDS):
            place = number % len(appends)
            key = generate_key("") if place == 0 else key
            expected = sum(len(records) for records in appends[:place])
            store.append(key, EventBatch(records=appends[place]), expected=expected)
        return time.perf_counter() - begun


def _append_all(url: str, name: str) -> float:
    with lamella.open(url) as engine:
        conversation = engine.chat(name)
        begun = time.perf_counter()
        for number in range(_APPENDS):
            conversation.rename(f"title {number}")
        return time.perf_counter() - begun
