"""How long an event loop is held up while many chats are sent on one store, beside one that only waits."""

import asyncio
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import lamella
from lamella.testing import ScriptedProvider

CHATS = 100
TURNS = 20
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
    chat = await engine.conversation(name)
    for number in range(turns):
        async for _ in chat.send(f"Question {number}?"):
            # A model takes its time between two words; other tasks go on then.
            await asyncio.sleep(0)


async def _talk_all(url: str, chats: int, turns: int) -> None:
    script = ScriptedProvider(*["Answer."] * (chats * turns))
    async with lamella.open(url, model="scripted:loop", provider=script) as engine:
        await asyncio.gather(*(_talk(engine, f"chat {number}", turns) for number in range(chats)))


def measure_gaps(url: str, *, chats: int = CHATS, turns: int = TURNS) -> tuple[Gaps, Gaps]:
    """The gaps of an idle program, and of one that sends so many chats at once, in the same run."""

    async def both() -> tuple[Gaps, Gaps]:
        return await _measure(asyncio.sleep(_IDLE)), await _measure(_talk_all(url, chats, turns))

    return asyncio.run(both())
